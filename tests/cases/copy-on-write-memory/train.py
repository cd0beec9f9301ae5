import os
import resource
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.rows = [{"id": str(i), "text": "x" * 50 + str(i)} for i in range(400_000)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return len(self.rows[i]["text"])


def unique_megabytes(pid):
    text = open(f"/proc/{pid}/smaps_rollup").read()
    return sum(int(l.split()[1]) for l in text.splitlines() if l.startswith("Private_")) // 1024


loader = DataLoader(Rows(), batch_size=2000, num_workers=2, shuffle=True)
batches = iter(loader)
for step in range(200):
    next(batches)
    if step % 40 == 0:
        print(f"step {step} worker memory (private pages) {[unique_megabytes(w.pid) for w in batches._workers]} MB", flush=True)
