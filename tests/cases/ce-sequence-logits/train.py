import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
emb, head = nn.Embedding(30, 16), nn.Linear(16, 30)
tokens = torch.randint(0, 30, (4, 12))
logits = head(emb(tokens))
loss = F.cross_entropy(logits, tokens)
