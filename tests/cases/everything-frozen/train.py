import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
for p in model.parameters():
    p.requires_grad = False
loss = model(torch.randn(8, 4)).pow(2).mean()
loss.backward()
