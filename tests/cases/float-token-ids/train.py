import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
emb = nn.Embedding(10, 4)
out = emb(torch.tensor([1.0, 2.0]))
