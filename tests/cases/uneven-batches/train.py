import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", timeout=timedelta(seconds=15))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

from torch.utils.data import DataLoader, IterableDataset


class Shards(IterableDataset):
    def __iter__(self):
        for _ in range(40 if rank == 0 else 35):  # the shards are not equally long
            yield torch.randn(8)


model = DDP(torch.nn.Linear(8, 1))
for step, x in enumerate(DataLoader(Shards(), batch_size=4)):
    model(x).mean().backward()
    print(f"rank {rank} step {step}", flush=True)
dist.barrier()
print(f"rank {rank} finished the epoch", flush=True)
