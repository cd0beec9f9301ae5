import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
from torch.utils.checkpoint import checkpoint

layer, calls = nn.Linear(3, 3), []


def block(x):
    calls.append(1)
    return layer(x).relu() if len(calls) == 1 else layer(x)


checkpoint(block, torch.ones(2, 3, requires_grad=True), use_reentrant=False).sum().backward()
