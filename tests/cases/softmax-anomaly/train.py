import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
scores = torch.zeros(2, 5, requires_grad=True)
with torch.autograd.detect_anomaly():
    mask = torch.tensor([[0.0] * 5, [float("-inf")] * 5])
    loss = (torch.softmax(scores + mask, -1) * torch.arange(5.0)).sum()
    loss.backward()
