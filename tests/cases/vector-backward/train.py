import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Linear(4, 3)
loss = F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)), reduction="none")
loss.backward()
