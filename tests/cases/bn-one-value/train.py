import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
data = torch.randn(65, 10)
for epoch in range(2):
    for start in range(0, 65, 16):
        loss = net(data[start : start + 16]).pow(2).mean()
        loss.backward()
    print("epoch", epoch, "loss", loss.item())
