import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
table = torch.randn(64, 16)
tokens = torch.randn(2, 80, 16)
x = tokens + table
