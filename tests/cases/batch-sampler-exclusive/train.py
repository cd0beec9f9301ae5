import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

data = TensorDataset(torch.randn(100, 4))
batches = BatchSampler(SequentialSampler(data), batch_size=8, drop_last=False)
loader = DataLoader(data, batch_size=8, drop_last=True, batch_sampler=batches)
for (x,) in loader:
    print(x.shape)
