import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
loss = F.cross_entropy(net(x), y)
