"""A metric over a sharded validation set is never joined.

What: the validation loader has a ``DistributedSampler``, a loop adds up hits or losses over it, and the program calls
no collective that carries results (``all_reduce``, ``all_gather``, ``gather``, ``reduce``).
Why it matters: each rank knows the score of its own shard; the one that is printed or decides is that of one rank.
When it is fine: where a metric object synchronises by itself, or the whole set is evaluated on one rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import ENGINES, HELD, TRAIN, bound_to, is_torch, made, names_in, source
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.joining import one_of_all, unjoined
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

WORDS = PROCESSES
BAD = (
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
@torch.no_grad()
def evaluate(model, loader):
    hits = total = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()  # expect
        total += len(y)
    return hits / total
def main(rank, model, train_set, val_set):
    dist.init_process_group("nccl")
    val_loader = DataLoader(val_set, 64, sampler=DistributedSampler(val_set, shuffle=False))
    acc = evaluate(model, val_loader)
    if rank == 0:
        print(acc)
    dist.barrier()
""",
    """
import torch
from torch.utils.data.distributed import DistributedSampler
class Runner:
    def __init__(self, dev_set):
        torch.distributed.init_process_group("gloo")
        dev_sampler = DistributedSampler(dev_set)
        self.dev = torch.utils.data.DataLoader(dev_set, batch_size=8, sampler=dev_sampler)
    def validate(self):
        losses = []
        for batch in self.dev:
            losses.append(self.model(batch).item())  # expect
        return sum(losses) / len(losses)
""",
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
def run(rank, net, test):
    dist.init_process_group("nccl", rank=rank)
    test_dl = DataLoader(test, 32, False, DistributedSampler(test, shuffle=False))
    correct = 0
    with torch.no_grad():
        for step, (x, y) in enumerate(test_dl):
            out = net(x.to(rank))
            correct = correct + (out.argmax(-1) == y.to(rank)).sum()  # expect
    print("accuracy", correct / len(test))
""",
)
GOOD = (
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
def evaluate(model, loader):
    hits = torch.zeros(2)
    for x, y in loader:
        hits[0] += (model(x).argmax(1) == y).sum()
        hits[1] += len(y)
    dist.all_reduce(hits)
    return hits[0] / hits[1]
def main(model, val_set):
    dist.init_process_group("nccl")
    return evaluate(model, DataLoader(val_set, sampler=DistributedSampler(val_set)))
""",
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
def main(model, train_set, val_set, opt):
    dist.init_process_group("nccl")
    train_loader = DataLoader(train_set, sampler=DistributedSampler(train_set))
    val_loader = DataLoader(val_set)
    shown = 0
    for x in train_loader:
        loss = model(x).sum()
        loss.backward()
        opt.step()
        opt.zero_grad()
        shown += loss.item()
    hits = 0
    for x in val_loader:
        hits += model(x).sum().item()
""",
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from torchmetrics import Accuracy
def main(model, val_set):
    dist.init_process_group("nccl")
    accuracy, n = Accuracy(task="binary"), 0
    for x, y in DataLoader(val_set, sampler=DistributedSampler(val_set)):
        accuracy.update(model(x), y)
        n += 1
    return accuracy.compute()
""",
)
JOINS = pattern(r"^(all_?gather|all_?reduce|gather|reduce|allreduce|reduce_|gather_|sync|merge_all|synchronize)")
METRICS = pattern(r"torchmetrics|torcheval|evaluate\.load|MetricLogger|MetricCollection|SmoothedValue")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), unjoined, one_of_all)


def _written(project: Project) -> Iterator[Evidence]:
    if not any(is_torch(project, c) for c in project.calls("init_process_group")):
        return
    text = source(project)
    if ENGINES.search(text) or METRICS.search(text) or any(JOINS.search(n) for n in project.calls_by_name):
        return
    for loader in project.calls(*LOADERS):
        sampler = loader.argument("sampler", 3)
        if sampler is None or not any(c.name == "DistributedSampler" for c in made(project, sampler, loader.scope)):
            continue
        data, name = loader.argument("dataset", 0), bound_to(project, loader)
        held = HELD.search(name) or (data is not None and names_in(data, HELD))
        if not held or TRAIN.search(name):
            continue
        for loop, scope in _loops(project, loader):
            node = _adds(loop)
            if node is not None:
                shown = "each rank adds up its own shard here, and the shards are never joined"
                yield sighting(__name__, (node, scope), shown, proof=[loader])
                return


def _loops(project: Project, loader: Call) -> Iterator[tuple[ast.For, Scope]]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for loop in project.within(scope, ast.For):
                assert isinstance(loop, ast.For)
                if any(step.node is loader.node for step in back(project, loop.iter, scope)):
                    yield loop, scope


def _adds(loop: ast.For) -> ast.AST | None:
    """The first statement in the loop that adds a result up."""
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _result(node.value):
            return node
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
            target = node.targets[0]
            same = isinstance(target, ast.Name) and any(
                isinstance(n, ast.Name) and n.id == target.id for n in ast.walk(node.value)
            )
            if same and _result(node.value.right):
                return node
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and last_name(call.func) in ("append", "extend") and any(map(_result, call.args)):
            return node
    return None


def _result(node: ast.expr) -> bool:
    """True for anything that is computed by a call."""
    return any(isinstance(n, ast.Call) and not _counts(n) for n in ast.walk(node))


def _counts(node: ast.Call) -> bool:
    return (isinstance(node.func, ast.Name) and node.func.id == "len") or (
        isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "numel")
    )
