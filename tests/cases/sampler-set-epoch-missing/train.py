import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", timeout=timedelta(seconds=15))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

from torch.utils.data import DataLoader, DistributedSampler

data = list(range(64))
sampler = DistributedSampler(data, shuffle=True)
first = []
for epoch in range(3):
    ids = [int(i) for batch in DataLoader(data, batch_size=8, sampler=sampler) for i in batch]
    first.append(ids[:5])
    print(f"rank {rank} epoch {epoch} first samples {ids[:5]}", flush=True)
assert first[0] != first[1], "the distributed sampler gives the same order in every epoch: set_epoch was not called"
