import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
logits = nn.Linear(6, 4)(torch.randn(5, 6))
labels = torch.tensor([0.0, 1.0, 3.0, 2.0, 1.0])
loss = F.cross_entropy(logits, labels)
