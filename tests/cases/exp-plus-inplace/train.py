import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(4, 5, requires_grad=True)
y = torch.exp(x)
y += 1
y.sum().backward()
