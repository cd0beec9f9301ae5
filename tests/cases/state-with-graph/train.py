import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
cell, head = nn.GRUCell(3, 6), nn.Linear(6, 1)
hidden = torch.zeros(4, 6)
for step in range(3):
    hidden = cell(torch.randn(4, 3), hidden)
    loss = head(hidden).pow(2).mean()
    loss.backward()
    print("step", step, "loss", loss.item(), "hidden", hidden.norm().item())
