import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
w = nn.Parameter(torch.randn(4, 5))
w[0] = 0.0
