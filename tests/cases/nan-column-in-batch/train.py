import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randint(3, (64,))

from torch.utils.data import DataLoader, TensorDataset
x[50, 2] = float("nan")
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for xb, yb in DataLoader(TensorDataset(x, y), batch_size=8):
    loss = F.cross_entropy(model(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
