import os, sys, time, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

kind, store = sys.argv[1], sys.argv[2]

def evaluate():
    until = time.monotonic() + 6
    while time.monotonic() < until:
        torch.randn(64, 64) @ torch.randn(64, 64)

def worker(rank):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for i in range(20):
        if i == 10 and kind == "ends" and rank == 1:
            break
        loss = model(torch.randn(8, 4)).square().mean()
        opt.zero_grad()
        loss.backward()
        if i == 10 and kind == "sleeps" and rank == 1:
            time.sleep(3600)
        if i == 10 and kind == "skips" and rank == 0:
            dist.barrier()
        if i == 10 and kind == "evaluates":
            if rank == 0:
                evaluate()
            dist.barrier()
        opt.step()
    if kind == "ends":
        time.sleep(3600 if rank else 0)

if __name__ == "__main__":
    mp.spawn(worker, nprocs=2)
