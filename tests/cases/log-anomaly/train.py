import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
p = torch.zeros(3, requires_grad=True)
with torch.autograd.detect_anomaly():
    loss = (torch.log(p) * torch.zeros(3)).sum()
    loss.backward()
