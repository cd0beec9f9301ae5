import tempfile

import torch
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    """Fixed-size records in one binary file; the file stays open."""

    def __init__(self, path):
        self.file = open(path, "rb")

    def __len__(self):
        return 16

    def __getitem__(self, i):
        self.file.seek(4 * i)
        return torch.frombuffer(bytearray(self.file.read(4)), dtype=torch.float32)


if __name__ == "__main__":
    path = tempfile.mkstemp()[1]
    torch.arange(16, dtype=torch.float32).numpy().tofile(path)
    loader = DataLoader(Records(path), batch_size=4, num_workers=2, multiprocessing_context="forkserver")
    for batch in loader:
        print(batch.ravel())
