import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", timeout=timedelta(seconds=15))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
model[0].requires_grad_(False)
model = FSDP(model, device_id=torch.device("cpu"), use_orig_params=False)
