import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
scores = torch.randn(2, 4, 4).half()
masked = scores.masked_fill(torch.ones(4, 4).tril() == 0, -1e9)
