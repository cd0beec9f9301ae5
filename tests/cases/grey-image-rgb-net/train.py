import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
stem = nn.Conv2d(3, 16, 7, stride=2)
x = torch.rand(4, 1, 64, 64)
y = stem(x)
