import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randint(3, (64,))

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3)).half()
opt = torch.optim.SGD(model.parameters(), lr=1e-4)
for i in range(5):
    a = x.half() * (1 if i < 3 else 6000)
    hidden = model[0](a)
    loss = model[2](hidden * 100).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
