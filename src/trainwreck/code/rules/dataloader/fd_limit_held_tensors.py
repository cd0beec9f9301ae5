"""Tensors of loader workers are kept in a list.

What: batches of a loader that has workers are appended to a list (or the loader is turned into a list) as they come.
Why it matters: each tensor from a worker holds a file descriptor (the default sharing strategy on Linux): some
thousands later the run stops with "too many open files".
When it is fine: for a few (or large) batches, for copies (``.clone()``, ``.item()``), for results of the model, or
with the sharing strategy ``file_system``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import is_torch, made, only, option, source
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch.utils.data import DataLoader
loader = DataLoader(ds, batch_size=1, num_workers=8)
labels = []
for x, y in loader:
    labels.append(y)  # expect
""",
    """
import torch
def collect(ds):
    loader = torch.utils.data.DataLoader(ds, num_workers=4)
    return list(loader)  # expect
""",
    """
from torch.utils.data import DataLoader
class Runner:
    def __init__(self, ds):
        self.loader = DataLoader(ds, 2, num_workers=2)
    def gather(self):
        kept = []
        for step, batch in enumerate(self.loader):
            kept.append((step, batch["ids"]))  # expect
        return kept
""",
)
GOOD = """
from torch.utils.data import DataLoader
def main(ds, model):
    loader = DataLoader(ds, num_workers=8)
    plain, large = DataLoader(ds), DataLoader(ds, 64, num_workers=4)
    outs, ys, all_y = [], [], []
    for x, y in loader:
        outs.append(model(x))
        ys.append(y.clone())
        all_y.extend(y.tolist())
        last = y
        ys.append(y.shape[0])
        ys.append(y.to("cuda"))
    for x, y in plain:
        ys.append(y)
    for x, y in large:
        ys.append(y)
    return list(plain)
"""
SMALL = 4
"""Samples in a batch, up to which a usual data set gives more tensors than the usual limit of 1,024 open files."""


def find(project: Project) -> Iterator[Evidence]:
    if "set_sharing_strategy" in source(project):
        return
    for call in project.calls("list"):
        if isinstance(call.node.func, ast.Name) and len(call.node.args) == 1:
            loader = _loader(project, call.node.args[0], call.scope)
            if loader is not None:
                yield sighting(__name__, call, _TEXT, proof=[loader], severity="suggestion")
    for call in project.calls("append"):
        if len(call.node.args) != 1:
            continue
        for above in project.ancestors(call.node, call.scope):
            if isinstance(above, ast.For):
                held = _parts(above.target)
                loader = _loader(project, above.iter, call.scope) if _as_it_came(call.node.args[0], held) else None
                if loader is not None:
                    yield sighting(__name__, call, _TEXT, proof=[loader], severity="suggestion")
                break


_TEXT = "tensors of the workers are kept as they come, and each keeps a file descriptor open"


def _loader(project: Project, node: ast.expr, scope: Scope) -> Call | None:
    """The loader with workers that ``node`` iterates over."""
    while isinstance(node, ast.Call) and last_name(node.func) in ("enumerate", "tqdm") and node.args:
        node = node.args[0]
    for call in made(project, node, scope):
        workers = only(project, option(project, call, "num_workers", 5))
        size = only(project, option(project, call, "batch_size", 1))
        many = size is None or (isinstance(size, int) and size <= SMALL)
        if call.name in LOADERS and is_torch(project, call) and isinstance(workers, int) and workers > 0 and many:
            return call
    return None


def _parts(target: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)} - {"i", "step", "idx", "n", "it", "batch_idx"}


def _as_it_came(node: ast.expr, held: set[str]) -> bool:
    """True for a part of the batch, or a tuple that holds one."""
    if isinstance(node, ast.Tuple):
        return any(_as_it_came(e, held) for e in node.elts)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return _as_it_came(node.value, held)
    return isinstance(node, ast.Name) and node.id in held
