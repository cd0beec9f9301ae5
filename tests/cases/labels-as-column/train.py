import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
logits = nn.Linear(4, 3)(torch.randn(10, 4))
labels = torch.randint(0, 3, (10, 1))
loss = nn.CrossEntropyLoss()(logits, labels)
