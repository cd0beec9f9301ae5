import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Linear(4, 3)
choice = model(torch.randn(8, 4)).argmax(1).float()
loss = (choice - 1.0).pow(2).mean()
loss.backward()
