import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
logits = nn.Linear(4, 5)(torch.randn(6, 4))
labels = torch.tensor([1, 2, 3, 4, 5, 1])
loss = F.cross_entropy(logits, labels)
