import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", timeout=timedelta(seconds=15))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

model = DDP(torch.nn.Linear(8, 1))
for step in range(6):
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    if rank == 0 and step % 3 == 2:
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        print(f"step {step} mean loss {mean.item() / world:.4f}", flush=True)
