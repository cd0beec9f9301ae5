"""Samples of an evaluation are repeated to even out the ranks.

What: ``DistributedSampler`` deals out data that are only evaluated, and their number is no multiple of that of the
ranks.
Why it matters: the sampler repeats the first samples: they count twice, and the result depends on the ranks.
When it is fine: where the number is a multiple, or the repeated samples are cut off after gathering.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.ranks import padded_evaluation
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

_JOB = """
import torch, torch.nn as nn
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
def data(n):
    return TensorDataset(torch.randn(n, 4), torch.randn(n, 1))
def work(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    train, val = data(800), data({})
    net = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    sampler = DistributedSampler(train, world, rank)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(train, 16, sampler=sampler):
            loss = (net(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    sums = torch.zeros(2)
    mine = DistributedSampler(val, world, rank, shuffle=False){}
    with torch.no_grad():
        for x, y in DataLoader(val, 16, sampler=mine):
            sums += torch.stack([(net(x) - y).pow(2).sum(), torch.tensor(float(len(x)))])
    dist.all_reduce(sums)
    print(sums[0] / sums[1])
if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
"""
WORDS = PROCESSES
BAD = _JOB.format(401, "  # expect")
GOOD = _JOB.format(400, "")


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, padded_evaluation)
