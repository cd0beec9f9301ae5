import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
logits = nn.Linear(4, 1)(torch.randn(10, 4))
labels = torch.randint(0, 2, (10,)).float()
loss = nn.BCEWithLogitsLoss()(logits, labels)
