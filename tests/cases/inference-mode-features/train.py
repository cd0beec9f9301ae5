import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
with torch.inference_mode():
    features = encoder(torch.randn(8, 4))
loss = head(features).pow(2).mean()
loss.backward()
