"""Ranks train on different data and never exchange gradients.

What: ``init_process_group`` and a ``DistributedSampler``, but the model is not wrapped (DDP, FSDP) and nothing
reduces gradients.
Why it matters: each rank trains a model of its own on its share of the data; the saved one saw a part only.
When it is fine: where an engine wraps it, or gradients are averaged by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.facts import (
    ENGINES,
    HELD,
    bound_to,
    is_torch,
    source,
)
from trainwreck.code.order import (
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
def main(ds, model):
    dist.init_process_group("nccl")
    loader = DataLoader(ds, sampler=DistributedSampler(ds))  # expect
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
""",
    """
import torch
def run(rank, world, ds, net):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    sampler = torch.utils.data.distributed.DistributedSampler(ds, world, rank)  # expect
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x in torch.utils.data.DataLoader(ds, sampler=sampler):
            net(x).sum().backward()
            net.opt.step()
            net.opt.zero_grad()
""",
)
GOOD = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
def main(ds, model):
    dist.init_process_group("nccl")
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    model = DDP(model)
    for x in loader:
        model(x).sum().backward()
        model.opt.step()
        model.opt.zero_grad()
"""
EXCHANGE = re.compile(
    r"DistributedDataParallel|\bDDP\b|FSDP|FullyShard|fully_shard|all_reduce|reduce_scatter|all_gather|replicate|parallelize|average_",
    re.IGNORECASE,
)


def find(project: Project) -> Iterator[Evidence]:
    text = source(project)
    if (
        ENGINES.search(text)
        or EXCHANGE.search(text)
        or not any(is_torch(project, c) for c in project.calls("init_process_group"))
    ):
        return
    steps = [s for s in training_steps(project) if s.steps]
    for call in project.calls("DistributedSampler"):
        if steps and is_torch(project, call) and not HELD.search(bound_to(project, call)):
            yield sighting(
                __name__,
                call,
                "each rank gets its share of the data here, and gradients are never exchanged",
                proof=steps[0].backward[:1],
            )
            return
