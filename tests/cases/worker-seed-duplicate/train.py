import random

import torch
from torch.utils.data import DataLoader, IterableDataset


class Crops(IterableDataset):
    """Endless random crops; every worker holds a copy of the same generator."""

    def __init__(self):
        self.rng = random.Random(7)

    def __iter__(self):
        for _ in range(3):
            yield self.rng.randrange(10_000), torch.utils.data.get_worker_info().id


for epoch in range(2):
    for offset, worker in DataLoader(Crops(), batch_size=None, num_workers=3):
        print(f"epoch {epoch} worker {worker} crop offset {offset}")
raise AssertionError("workers repeat the same random numbers: offsets are identical in every worker and epoch")
