"""Hand-made data parallelism starts from different weights.

What: gradients are averaged by hand (``all_reduce`` over ``parameters()``), each rank seeds differently or not at all,
and nothing sends the weights of one rank to the others before training; or one process plays the ranks, and each
network draws its own weights.
Why it matters: equal gradients applied to different weights keep them different for ever.
When it is fine: with one seed for all ranks at construction, with ``broadcast`` of the parameters, or under DDP.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import ENGINES, is_torch, optimizers, reach, source
from trainwreck.code.flow import back
from trainwreck.code.order import training_steps
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.own_averaging import copy_broadcast
from trainwreck.code.rehearsal.questions.played_starts import drawn_apart
from trainwreck.code.rehearsal.questions.replicas import unlike
from trainwreck.code.rule import sighting
from trainwreck.code.seek import modules
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

WORDS = (*PROCESSES, ".grad")
BAD = (
    """
import torch, torch.nn as nn, torch.distributed as dist
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 2)
def average(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
def worker(rank, loader):
    dist.init_process_group("gloo", rank=rank)
    torch.manual_seed(100 + rank)
    model = Net()  # expect
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        opt.zero_grad()
        model(x).sum().backward()
        average(model)
        opt.step()
""",
    """
import torch
import torch.distributed as dist
class Tower(torch.nn.Module):
    pass
def main(data):
    dist.init_process_group("nccl")
    net = Tower()  # expect
    optim = torch.optim.Adam(net.parameters())
    for x in data:
        net(x).mean().backward()
        for w in net.parameters():
            dist.all_reduce(w.grad.data, op=dist.ReduceOp.AVG)
        optim.step()
        optim.zero_grad()
""",
    """
import os, torch
from torch import nn, distributed as dist
RANK = int(os.environ["RANK"])
class M(nn.Module):
    pass
dist.init_process_group("gloo")
torch.manual_seed(RANK)
m = M()  # expect
o = torch.optim.SGD(m.parameters(), 0.1)
for step in range(10):
    m(torch.randn(2)).sum().backward()
    grads = [p.grad for p in m.parameters()]
    for g in grads:
        dist.all_reduce(g)
    o.step()
    o.zero_grad()
""",
)
GOOD = (
    """
import torch, torch.nn as nn, torch.distributed as dist
class Net(nn.Module):
    pass
def worker(rank, loader):
    dist.init_process_group("gloo", rank=rank)
    torch.manual_seed(100)
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(x).sum().backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        opt.step()
        opt.zero_grad()
""",
    """
import torch, torch.nn as nn, torch.distributed as dist
class Net(nn.Module):
    pass
def worker(rank, loader):
    dist.init_process_group("gloo", rank=rank)
    torch.manual_seed(rank)
    model = Net()
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(x).sum().backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        opt.step()
        opt.zero_grad()
""",
    """
import torch, torch.nn as nn, torch.distributed as dist
class Net(nn.Module):
    pass
def worker(rank, loader, path):
    dist.init_process_group("gloo", rank=rank)
    model = Net()
    model.load_state_dict(torch.load(path))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(x).sum().backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        opt.step()
        opt.zero_grad()
""",
)
ALIKE = pattern(r"broadcast|DistributedDataParallel|FSDP|fully_shard|load_state_dict|from_pretrained|load_model")
"""Whatever may make the weights of all ranks alike."""
RANKS = pattern(r"rank", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), copy_broadcast, unlike, drawn_apart)


def _written(project: Project) -> Iterator[Evidence]:
    text = source(project)
    if ENGINES.search(text) or ALIKE.search(text):
        return
    if not any(is_torch(project, c) for c in project.calls("init_process_group")):
        return
    for step in training_steps(project):
        exchange = next((c for c in reach(project, step.body, step.scope) if _of_gradients(project, c)), None)
        if exchange is None or not _differs(project):
            continue
        networks = modules(project)
        for optimizer in optimizers(project):
            for given in optimizer.node.args[:1]:
                owner = (
                    given.func.value if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) else None
                )
                if owner is None or project.class_of(owner, optimizer.scope) not in networks:
                    continue
                for at in back(project, owner, optimizer.scope):
                    made = project.resolve(at.node.func, at.scope) if isinstance(at.node, ast.Call) else None
                    if made is not None and made in networks:
                        shown = "these weights differ between ranks, and only gradients are exchanged"
                        yield sighting(__name__, at, shown, proof=[exchange, *_seeds(project)[:1]])
                        return


def _of_gradients(project: Project, call: Call) -> bool:
    if call.name != "all_reduce" or not is_torch(project, call) or not call.node.args:
        return False
    return any("grad" in written(s.node) for s in back(project, call.node.args[0], call.scope))


def _seeds(project: Project) -> list[Call]:
    return [
        c
        for name in project.calls_by_name
        if "seed" in name.lower()
        for c in project.calls(name)
        if not project.called(c).startswith(("numpy", "random."))
    ]


def _differs(project: Project) -> bool:
    """True where no call seeds torch, or every one of them depends on the rank."""
    seeds = _seeds(project)
    return all(
        c.node.args and any(RANKS.search(written(s.node)) for s in back(project, c.node.args[0], c.scope))
        for c in seeds
    )
