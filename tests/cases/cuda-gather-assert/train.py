import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
logp = torch.randn(2, 5, 11, device="cuda").log_softmax(-1)
labels = torch.tensor([[1, 2, 3, -100, -100], [4, 5, 6, 7, -100]], device="cuda")
picked = logp.gather(-1, labels.unsqueeze(-1))
print(picked.sum().item())
