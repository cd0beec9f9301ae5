import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", timeout=timedelta(seconds=15))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

torch.manual_seed(rank)
model = torch.nn.Linear(8, 1)
for step in range(3):
    checksum = torch.cat([p.detach().ravel() for p in model.parameters()]).sum()
    sums = [torch.zeros(()) for _ in range(world)]
    dist.all_gather(sums, checksum)
    if rank == 0:
        print(f"step {step} parameter checksums of all ranks {[round(s.item(), 4) for s in sums]}", flush=True)
    if step == 0:
        assert torch.allclose(sums[0], sums[1]), "initial weights differ between ranks before the first step"
