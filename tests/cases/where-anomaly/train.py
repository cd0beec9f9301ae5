import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
with torch.autograd.detect_anomaly():
    y = torch.where(x > 0, torch.sqrt(x), torch.zeros_like(x))
    y.sum().backward()
