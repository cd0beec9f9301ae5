import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
scores = torch.randn(3, 5, 7)
weights = F.softmax(scores)
print("loss", (weights.sum(-1) - 1).abs().mean().item())
