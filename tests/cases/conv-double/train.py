import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
conv = nn.Conv1d(1, 4, 3)
out = conv(torch.tensor([[[0.1, 0.2, 0.3, 0.4]]], dtype=torch.float64))
