import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Transformer(d_model=16, nhead=4, num_encoder_layers=1, num_decoder_layers=1)
src, tgt = torch.randn(6, 30, 16), torch.randn(6, 25, 16)
out = model(src, tgt)
