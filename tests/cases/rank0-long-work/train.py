import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", timeout=timedelta(seconds=15))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

import time

if rank == 0:
    print("rank 0 tokenizes the corpus", flush=True)
    time.sleep(40)
dist.barrier()
model = DDP(torch.nn.Linear(8, 1))
print(f"rank {rank} starts training", flush=True)
