import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
out = nn.Linear(4, 1).cuda()(torch.randn(16, 4, device="cuda") * 5)
loss = nn.BCELoss()(out, torch.ones(16, 1, device="cuda"))
print("loss", loss.item())
