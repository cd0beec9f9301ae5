import torch
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.rand(4, 64, 64, 32)


for step, batch in enumerate(DataLoader(Volumes(), batch_size=8, num_workers=2)):
    print("step", step, batch.shape)
