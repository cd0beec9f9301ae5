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
for p in model.parameters():
    dist.broadcast(p.data, 0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = (model(torch.randn(16, 8)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
checksum = torch.cat([p.detach().ravel() for p in model.parameters()]).sum()
sums = [torch.zeros(()) for _ in range(world)]
dist.all_gather(sums, checksum)
print(f"rank {rank} parameter checksums of all ranks {[round(s.item(), 4) for s in sums]}", flush=True)
assert torch.allclose(sums[0], sums[1]), "model parameters differ between ranks"
