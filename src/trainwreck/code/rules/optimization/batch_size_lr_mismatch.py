"""Each process multiplies its batch by the number of processes, and the learning rate stays.

What: ``batch_size=args.batch * world_size`` (or ``order.split(size * world)``) on data that is divided among ranks,
with a rate that knows nothing of it.
Why it matters: every rank takes world times the batch, so that the whole batch grows with the square of the number of
processes: there are fewer updates, with a rate that was chosen for the small batch.
When it is fine: where the rate is scaled too, or the batch of the whole job is divided among the ranks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import optimizers, option, source
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
def main(rank, world_size, data, net, batch):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    sampler = DistributedSampler(data, world_size, rank)
    loader = DataLoader(data, batch_size=batch * world_size, sampler=sampler)  # expect
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        opt.zero_grad()
        net(x, y).backward()
        opt.step()
""",
    """
import torch
import torch.distributed as dist
SIZE = 32
def job(rank, world, net, x, y):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    mine = torch.randperm(len(x))[rank::world]
    for idx in mine.split(world * SIZE):  # expect
        loss = (net(x[idx]) - y[idx]).square().mean()
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        opt.step()
""",
)
GOOD = (
    """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
def main(rank, world_size, data, net, batch):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    loader = DataLoader(data, batch_size=batch // world_size, sampler=DistributedSampler(data, world_size, rank))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        net(x, y).backward()
        opt.step()
        opt.zero_grad()
    print("whole batch", batch * world_size)
""",
    """
import torch
import torch.distributed as dist
def job(rank, world, net, x, size):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    for idx in order.split(size * world):
        mine = idx[rank * size:(rank + 1) * size]
        net(x[mine]).sum().backward()
        opt.step()
        opt.zero_grad()
""",
)
WORLD = re.compile(r"^(world|world_size|n_?procs|num_processes|(n_?)?ranks|num_replicas|replicas)$", re.IGNORECASE)
DIVIDED = re.compile(r"DistributedSampler|\[\s*(self\.)?rank\s*:[^\]]*:")
"""Data of which each rank has its share before it is cut into batches."""


def find(project: Project) -> Iterator[Evidence]:
    text = source(project)
    if "init_process_group" not in text or not DIVIDED.search(text):
        return
    rates = [option(project, call, "lr", 1) for call in optimizers(project)]
    if not rates or any(rate is not None and _with_world(rate[0]) for rate in rates):
        return
    for call in project.calls("DataLoader", "split"):
        size = _size(project, call)
        if size is not None and isinstance(size, ast.BinOp) and isinstance(size.op, ast.Mult) and _with_world(size):
            told = "each rank takes the batch times the number of processes from its own share, with the same rate"
            yield sighting(__name__, call, told)


def _size(project: Project, call: Call) -> ast.expr | None:
    """How many samples are taken at once, by a loader or from the order of a rank's own share."""
    if call.name == "DataLoader":
        found = option(project, call, "batch_size", 1)
        return found[0] if found is not None else None
    return call.node.args[0] if call.node.args and _own_share(project, call.receiver, call.scope, 0) else None


def _own_share(project: Project, value: ast.expr | None, scope: Scope, depth: int) -> bool:
    """True for ``order[rank::world]``, a name for it, and what a function of the program gives back of the kind."""
    if value is None or depth > 4:
        return False
    if isinstance(value, ast.Subscript):
        return bool(DIVIDED.search(written(value)))
    if isinstance(value, ast.Name):
        bound = [b.value for b in project.lookup(value.id, scope) if b.kind == "assign"]
        single = [e for b in bound for e in (b.elts if isinstance(b, ast.Tuple) else [b])]
        return any(_own_share(project, b, scope, depth + 1) for b in single)
    if isinstance(value, ast.Call) and last_name(value.func) in ("randperm", "arange", "permutation", "len"):
        return any(_own_share(project, a, scope, depth + 1) for a in value.args)  # the order of what a rank has
    target = project.resolve(value.func, scope) if isinstance(value, ast.Call) else None
    returned = [n.value for n in target.nodes if isinstance(n, ast.Return)] if target is not None else []
    return bool(returned) and target is not None and all(_own_share(project, r, target, depth + 1) for r in returned)


def _with_world(value: ast.expr) -> bool:
    """True if the number of processes is a part of the expression."""
    names = [last_name(n) for n in ast.walk(value) if isinstance(n, ast.Name | ast.Attribute)]
    return any(WORLD.match(n) or n == "get_world_size" for n in names)
