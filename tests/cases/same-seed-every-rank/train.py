import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", timeout=timedelta(seconds=15))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

torch.manual_seed(42)
noise = torch.randn(4)
drawn = [torch.zeros(4) for _ in range(world)]
dist.all_gather(drawn, noise)
assert not torch.equal(drawn[0], drawn[1]), "every rank draws the same random noise"
