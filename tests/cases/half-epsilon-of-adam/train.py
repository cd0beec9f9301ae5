import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randint(3, (64,))

model = nn.Linear(6, 3).half()
opt = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-8, foreach=False)
x[:, 5] = 0.0
for i in range(4):
    loss = F.cross_entropy(model(x.half()).float(), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
