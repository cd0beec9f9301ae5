import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
conv = nn.Conv2d(3, 4, 3).cuda().half()
out = conv(torch.randn(1, 3, 8, 8, device="cuda"))
