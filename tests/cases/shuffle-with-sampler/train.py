import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

labels = torch.tensor([0] * 90 + [1] * 10)
data = TensorDataset(torch.randn(100, 4), labels)
sampler = WeightedRandomSampler(torch.where(labels == 1, 9.0, 1.0), 100)
loader = DataLoader(data, batch_size=10, sampler=sampler, shuffle=True)
for x, y in loader:
    print(y.float().mean())
