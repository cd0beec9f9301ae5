import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
rnn = nn.GRU(5, 9, batch_first=True)
data = torch.randn(50, 7, 5)
state = torch.zeros(1, 16, 9)
for start in range(0, 50, 16):
    out, state = rnn(data[start : start + 16], state.detach())
    print("step", start, "mean", out.mean().item())
