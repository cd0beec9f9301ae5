import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
w = nn.Linear(3, 4)
with torch.no_grad():
    w.weight[0, 0] = float("nan")
policy = torch.distributions.Categorical(logits=w(torch.ones(2, 3)))
