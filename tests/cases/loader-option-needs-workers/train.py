import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 8))
loader = DataLoader(data, batch_size=8, num_workers=0, prefetch_factor=4)
for (x,) in loader:
    print(x.shape)
