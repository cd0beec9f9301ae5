import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for step in range(2):
    scaler.scale(model(torch.randn(8, 4)).mean()).backward()
    scaler.unscale_(opt)
    scaler.step(opt)
