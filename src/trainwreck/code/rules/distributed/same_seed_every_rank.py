"""Every rank draws the same batches.

What: ``init_process_group``, one constant seed for all ranks, and a training loop that picks its samples at random by
itself (``randint``, ``randperm``, ``choice`` used as an index), with nothing that depends on the rank.
Why it matters: all ranks see the same samples: N devices do the work of one, and the effective batch is not larger.
When it is fine: with ``seed + rank``, a ``DistributedSampler``, or data that are cut by rank before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import ENGINES, is_torch, reach, source
from trainwreck.code.flow import back
from trainwreck.code.order import training_steps
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.streams import same_stream
from trainwreck.code.rule import sighting
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

WORDS = PROCESSES
BAD = (
    """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
def get_batch(data, size, block):
    ix = torch.randint(len(data) - block, (size,))
    return torch.stack([data[i : i + block] for i in ix])
def main(rank, data, net):
    dist.init_process_group("nccl")
    torch.manual_seed(1337)  # expect
    model = DDP(net.to(rank))
    opt = torch.optim.AdamW(model.parameters())
    for step in range(100):
        x = get_batch(data, 8, 64)
        model(x).mean().backward()
        opt.step()
        opt.zero_grad()
""",
    """
import numpy as np, torch
SEED = 42
def worker(rank, world, net, x, y, opt):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    rng = np.random.default_rng(SEED)  # expect
    torch.manual_seed(SEED + rank)
    model = torch.nn.parallel.DistributedDataParallel(net)
    while True:
        picked = rng.choice(len(x), 32)
        loss = torch.nn.functional.mse_loss(model(x[picked]), y[picked])
        loss.backward()
        opt.step()
        opt.zero_grad()
""",
    """
import random, torch
import torch.distributed as dist
def fit(net, rows, opt):
    dist.init_process_group("nccl")
    random.seed(0)  # expect
    net = torch.nn.parallel.DistributedDataParallel(net)
    for step in range(1000):
        batch = random.sample(rows, 16)
        net(batch).sum().backward()
        opt.step()
        opt.zero_grad()
""",
    """
import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

def main_worker(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(3)
    net = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    rng = np.random.default_rng(11)  # expect
    for it in range(400):
        xs = rng.normal(size=(64, 8)).astype("float32")
        ys = (xs[:, 0] * xs[:, 1] > 0).astype("int64")
        x, y = torch.from_numpy(xs), torch.from_numpy(ys)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(main_worker, args=(2,), nprocs=2)
""",
    """
import torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset
class Stream(IterableDataset):
    def __init__(self, seed, n):
        self.seed, self.n = seed, n
    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.seed)  # expect
        for _ in range(self.n):
            x = torch.randn(8, generator=g)
            yield x, (x.sum() > 0).long()
def run():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    net = DDP(nn.Linear(8, 2))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    loader = DataLoader(Stream(5, 6400), batch_size=32)
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
if __name__ == "__main__":
    run()
""",
)
GOOD = (
    """
import torch, torch.distributed as dist
def get_batch(data, size, block):
    ix = torch.randint(len(data) - block, (size,))
    return torch.stack([data[i : i + block] for i in ix])
def main(data, net, opt):
    dist.init_process_group("nccl")
    offset = dist.get_rank()
    torch.manual_seed(1337 + offset)
    for step in range(100):
        x = get_batch(data, 8, 64)
        net(x).mean().backward()
        opt.step()
        opt.zero_grad()
""",
    """
import torch, torch.distributed as dist
def main(rank, world, data, net, opt):
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    data = data[rank::world]
    for step in range(100):
        ix = torch.randint(len(data), (8,))
        net(data[ix]).mean().backward()
        opt.step()
        opt.zero_grad()
""",
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
def main(ds, net, opt):
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    for x in DataLoader(ds, sampler=DistributedSampler(ds)):
        noise = torch.randn_like(x)
        net(x + noise).mean().backward()
        opt.step()
        opt.zero_grad()
""",
    """
import torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
def train(rank, world, cfg):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(1234)
    net = DistributedDataParallel(nn.Linear(8, 1))
    torch.manual_seed(1234 + rank)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(100):
        z = torch.rand(16, 8)
        loss = (net(z) - torch.sin(z).sum(1, keepdim=True)).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
    """
import torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
def train(rank, world, cfg):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    g = torch.Generator()
    g.manual_seed(99)
    net = DistributedDataParallel(nn.Linear(8, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    data = torch.randn(1000, 8, generator=g)
    target = data.sum(1, keepdim=True)
    for step in range(100):
        order = torch.randperm(len(data), generator=g)[rank::world]
        for idx in order.split(32):
            loss = (net(data[idx]) - target[idx]).square().mean()
            opt.zero_grad(); loss.backward(); opt.step()
""",
    """
import torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset
class Stream(IterableDataset):
    def __init__(self, seed, n):
        self.seed, self.n = seed, n
    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.seed)
        for _ in range(self.n):
            x = torch.randn(8, generator=g)
            yield x, (x.sum() > 0).long()
def run():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    net = DDP(nn.Linear(8, 2))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    loader = DataLoader(Stream(5 + 1000 * rank, 6400), batch_size=32)
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
if __name__ == "__main__":
    run()
""",
)
PICKS = {
    "torch": frozenset(["randint", "randperm", "multinomial"]),
    "numpy": frozenset(["randint", "choice", "permutation", "integers"]),
    "random": frozenset(["sample", "choice", "choices", "randrange", "randint"]),
}
"""Draws that choose samples, by the package whose generator they use."""
RANKS = pattern(r"rank|world_size|process_index|shard", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), same_stream)


def _seen(project: Project) -> Iterator[Evidence]:
    if not any(is_torch(project, c) for c in project.calls("init_process_group")):
        return
    if ENGINES.search(source(project)) or re.search(r"DistributedSampler|DistributedBatchSampler", source(project)):
        return
    for step in training_steps(project):
        for draw in reach(project, step.body, step.scope):
            kind = _picks(project, draw)
            seed = _seed(project, draw, kind) if kind else None
            if kind is None or seed is None or _by_rank(project, draw):
                continue
            text = "all ranks start from this seed, and each picks its samples with it"
            yield sighting(__name__, seed, text, proof=[draw, step.backward[0]])
            return


def _picks(project: Project, draw: Call) -> str | None:
    """The package whose generator picks samples here."""
    full = project.called(draw)
    package = full.split(".", 1)[0]
    if package in PICKS and draw.name in PICKS[package] and draw.argument("generator") is None:
        return package
    if draw.receiver is not None and draw.name in PICKS["numpy"] and _maker(project, draw) is not None:
        return "numpy"
    return None


def _maker(project: Project, draw: Call) -> Call | None:
    """The ``default_rng(seed)`` whose object is drawn from."""
    if draw.receiver is None:
        return None
    for step in back(project, draw.receiver, draw.scope):
        if isinstance(step.node, ast.Call):
            call = Call(step.node, step.scope)
            if call.name in ("default_rng", "RandomState") and call.node.args:
                return call
    return None


def _seed(project: Project, draw: Call, package: str | None) -> Call | None:
    """The one place that seeds the generator of ``draw`` with the same number on every rank."""
    own = _maker(project, draw)
    if own is not None:
        return None if _varies(project, own) else own
    wanted = {"torch": ("manual_seed",), "numpy": ("seed",), "random": ("seed",)}[package or "torch"]
    seeds = [c for c in project.calls(*wanted) if project.called(c).split(".", 1)[0] == package and c.node.args]
    helpers = [c for n in project.calls_by_name if "seed" in n and n not in wanted for c in project.calls(n)]
    if len(seeds) != 1 or _varies(project, seeds[0]) or any(RANKS.search(written(c.node)) for c in helpers):
        return None
    return seeds[0]


def _varies(project: Project, seed: Call) -> bool:
    """True if the seed depends on the rank, or is not seen to be a number."""
    texts = [written(s.node) for s in back(project, seed.node.args[0], seed.scope)]
    return any(RANKS.search(t) for t in texts) or not any(t.isdigit() for t in texts)


def _by_rank(project: Project, draw: Call) -> bool:
    """True if the size that is drawn from, or what is indexed, depends on the rank."""
    where = project.statement(draw.node, draw.scope)
    if RANKS.search(written(where)):
        return True
    read = [n for n in ast.walk(where) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return any(RANKS.search(written(s.node)) for n in read for s in back(project, n, draw.scope))
