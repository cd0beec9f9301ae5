import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
features = torch.randn(8, 3, 10, 10)
logits = nn.Linear(100, 4)(features.view(-1, 100))
loss = F.cross_entropy(logits, torch.randint(0, 4, (8,)))
