import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
import numpy as np

loss = torch.rand(5, device="cuda")
print(np.mean(loss.numpy()))
