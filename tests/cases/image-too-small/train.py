import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.Conv2d(4, 8, 5))
out = net(torch.randn(1, 1, 10, 10))
