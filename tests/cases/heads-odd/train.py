import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(d_model=100, nhead=8)
