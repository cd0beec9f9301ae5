import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.zeros(3, requires_grad=True)
with torch.autograd.detect_anomaly():
    length = (x * x).sum().sqrt()
    (length * 0).backward()
