import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, scale):
        self.scale = scale
        self.transform = lambda x: x * scale

    def __len__(self):
        return 32

    def __getitem__(self, i):
        return self.transform(torch.full((4,), float(i)))


if __name__ == "__main__":
    loader = DataLoader(Windows(0.1), batch_size=4, num_workers=2, multiprocessing_context="spawn")
    for step, batch in enumerate(loader):
        print(step, batch.mean().item())
