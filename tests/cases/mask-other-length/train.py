import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
hidden = torch.randn(3, 20, 8)
keep = torch.ones(3, 18, dtype=torch.bool)
chosen = hidden[keep]
