import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
heads = torch.randn(2, 4, 10, 8)
merged = heads.transpose(1, 2).view(2, 10, 32)
