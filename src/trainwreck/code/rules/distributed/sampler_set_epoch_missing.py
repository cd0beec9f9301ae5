"""The distributed sampler is never told the epoch.

What: a ``DistributedSampler`` in a loop over epochs, and nothing calls ``set_epoch``.
Why it matters: every epoch has the same order on every rank.
When it is fine: for evaluation, one epoch, ``shuffle=False``, or frameworks that call it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    ENGINES,
    HELD,
    bound_to,
    is_torch,
    names_in,
    only,
    option,
    source,
    text_of,
)
from trainwreck.code.order import (
    loops,
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.ranks import same_order
from trainwreck.code.rehearsal.questions.told_epochs import never_told
from trainwreck.code.rule import sighting
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

WORDS = (*PROCESSES, "set_epoch")
BAD = (
    """
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
def main(ds, model, opt, epochs):
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, sampler=sampler, batch_size=8)
    for epoch in range(epochs):
        for x in loader:  # expect
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
""",
    """
import torch
class Trainer:
    def __init__(self, ds, rank, world):
        sampler = torch.utils.data.DistributedSampler(ds, world, rank, shuffle=True)
        self.loader = torch.utils.data.DataLoader(ds, sampler=sampler)
    def fit(self, n):
        for epoch in range(n):
            for batch in self.loader:  # expect
                self.opt.zero_grad()
                self.model(batch).backward()
                self.opt.step()
""",
    """
import torch, torch.nn as nn
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
def one_epoch(net, opt, loader):
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
def worker(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    ds = TensorDataset(torch.randn(1000, 8), torch.randint(0, 3, (1000,)))
    shares = DistributedSampler(ds, world, rank)
    judged = DistributedSampler(ds, world, rank)
    net = nn.parallel.DistributedDataParallel(nn.Linear(8, 3))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for ep in range(10):
        one_epoch(net, opt, DataLoader(ds, 32, sampler=shares))  # expect
        judged.set_epoch(ep)
torch.multiprocessing.spawn(worker, args=(2,), nprocs=2)
""",
    """
import torch, torch.nn as nn
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
def worker(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    ds = TensorDataset(torch.randn(1000, 8), torch.randint(0, 3, (1000,)))
    loader = DataLoader(ds, 32, sampler=DistributedSampler(ds, world, rank))
    net = nn.parallel.DistributedDataParallel(nn.Linear(8, 3))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    loader.sampler.set_epoch(0)  # expect
    for ep in range(10):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
""",
)
GOOD = """
from torch.utils.data import DataLoader, DistributedSampler
def main(train, val, model, opt, epochs):
    sampler = DistributedSampler(train)
    val_sampler = DistributedSampler(val, shuffle=False)
    loader = DataLoader(train, sampler=sampler)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for x in loader:
            model(x).sum().backward()
            opt.step()
            opt.zero_grad()
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(answers(__name__, project, same_order)) or list(answers(__name__, project, never_told))
    yield from found or _seen(project)


def _seen(project: Project) -> Iterator[Evidence]:
    if "set_epoch" in source(project) or ENGINES.search(source(project)):
        return
    epochs = [
        s
        for s in training_steps(project)
        if s.loop is not None and (loops(project, s.body, s.scope) or "epoch" in text_of(project, s.scope))
    ]
    if not epochs:
        return
    for call in project.calls("DistributedSampler"):
        if (
            not is_torch(project, call)
            or only(project, option(project, call, "shuffle", 3)) is False
            or HELD.search(bound_to(project, call))
        ):
            continue
        dataset = call.argument("dataset", 0)
        if dataset is not None and names_in(dataset, HELD):
            continue
        step = epochs[0]
        around = loops(project, step.body, step.scope)
        first = around[0].body[0] if around else step.loop
        assert first is not None
        text = "set_epoch is never called: each epoch has the same order"
        yield sighting(__name__, (first, step.scope), text, proof=[call])
