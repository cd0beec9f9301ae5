"""All ranks save to one file.

What: ``torch.save`` in a training loop of a distributed program, with no test of the rank around it and no rank in
the name.
Why it matters: the processes write the same file at once: it can end up torn.
When it is fine: for sharded checkpoints, or where the caller tests the rank.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    ENGINES,
    guarded,
    is_torch,
    later,
    source,
)
from trainwreck.code.order import (
    training_steps,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.collectives import saved_by_all
from trainwreck.code.rule import sighting
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

WORDS = PROCESSES
BAD = (
    """
import torch
import torch.distributed as dist
def main(model, loader, opt):
    dist.init_process_group("nccl")
    for epoch in range(3):
        for x in loader:
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
        torch.save(model.state_dict(), "last.pt")  # expect
""",
    """
import torch
from torch.distributed import init_process_group
init_process_group(backend="gloo")
def train(net, batches, optimizer):
    for x in batches:
        net(x).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.save({"model": net.state_dict()}, f"out/model.pt")  # expect
""",
)
GOOD = """
import torch
import torch.distributed as dist
def main(model, loader, opt, rank):
    dist.init_process_group("nccl")
    for epoch in range(3):
        for x in loader:
            model(x).sum().backward()
            opt.step()
            opt.zero_grad()
        if rank == 0:
            torch.save(model.state_dict(), "last.pt")
        torch.save(model.state_dict(), f"shard_{rank}.pt")
    if rank != 0:
        return
    torch.save(model.state_dict(), "end.pt")
def train(model, loader, opt):
    torch.distributed.init_process_group("nccl")
    r = int(os.environ["LOCAL_RANK"])
    first = torch.distributed.get_rank() == 0
    for x in loader:
        model(x).sum().backward()
        opt.step()
        opt.zero_grad()
    if r == 0:
        torch.save(model.state_dict(), "last.pt")
    if first:
        torch.save(opt.state_dict(), "opt.pt")
"""
RANK = pattern(r"rank|main|master|is_|global_step|primary|save", re.IGNORECASE)

APART = pattern(r"(?i)rank|getpid|gethostname|uuid|mkdtemp")
"""Words of a path that is another one in each process."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), saved_by_all)


def _seen(project: Project) -> Iterator[Evidence]:
    if not any(is_torch(project, c) for c in project.calls("init_process_group")) or ENGINES.search(source(project)):
        return
    for call in project.calls("save"):
        if project.called(call) != "torch.save" or guarded(project, call.node, call.scope, RANK):
            continue
        if not any(s.scope is call.scope for s in training_steps(project)) or APART.search(written(call.node)):
            continue
        if "rank" in _before(project, call).lower():
            continue
        yield sighting(
            __name__,
            call,
            "every rank writes this file at the same time",
            proof=[c for c in project.calls("init_process_group")][:1],
        )


def _before(project: Project, call: Call) -> str:
    """Tests of the function that leave it before ``call``."""
    return " ".join(
        written(n.test)
        for n in project.within(call.scope, ast.If)
        if isinstance(n, ast.If) and not later(n, call.node) and any(isinstance(s, ast.Return) for s in ast.walk(n))
    )
