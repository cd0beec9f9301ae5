import os

import torch
from accelerate import Accelerator

model = torch.nn.Linear(4, 4)
model.hf_device_map = {"layers.0": 0, "layers.1": 1}
os.environ["ACCELERATE_BYPASS_DEVICE_MAP"] = "false"
accelerator = Accelerator(cpu=True)
print(accelerator.distributed_type)
model = accelerator.prepare(model)
