"""Every worker yields the whole iterable data set.

What: an ``IterableDataset`` whose ``__iter__`` never asks which worker it runs in, in a loader with several
workers.
Why it matters: each sample comes once per worker: an epoch is N times too long and batches repeat.
When it is fine: where samples are random draws, or sharding happens elsewhere (``worker_init_fn``,
``split_by_node``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import (
    only,
    option,
    text_of,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.workers import unsharded
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.code.sharding import numbered, whole_walk
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch.utils.data import DataLoader, IterableDataset
class Lines(IterableDataset):
    def __init__(self, path):
        self.path = path
    def __iter__(self):  # expect
        with open(self.path) as f:
            for line in f:
                yield line
loader = DataLoader(Lines("a.txt"), batch_size=8, num_workers=4)
""",
    """
import torch
class Rows(torch.utils.data.IterableDataset):
    def __init__(self, rows):
        self.rows = rows
    def __iter__(self):  # expect
        return iter(self.rows)
def main(rows):
    ds = Rows(rows)
    return torch.utils.data.DataLoader(ds, num_workers=2)
""",
)
GOOD = (
    """
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
class Lines(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for i, line in enumerate(open(self.path)):
            if info is None or i % info.num_workers == info.id:
                yield line
class Noise(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randn(3)
class Single(IterableDataset):
    def __iter__(self):
        yield from self.rows
def main(init):
    a = DataLoader(Lines(), num_workers=4)
    b = DataLoader(Noise(), num_workers=4)
    return a, b, DataLoader(Single(), num_workers=0), DataLoader(Single(), num_workers=2, worker_init_fn=init)
""",
)
SHARDS = pattern(r"worker|shard|rank|split_by|world_size|islice", re.IGNORECASE)
RANDOM = pattern(r"rand|normal|choice|shuffle|sample|simulat|env\.|generate", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), unsharded)


def _seen(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*LOADERS):
        workers = only(project, option(project, call, "num_workers", 5))
        dataset = call.argument("dataset", 0)
        owner = project.class_of(dataset, call.scope) if dataset is not None else None
        if owner is None or not isinstance(workers, int) or workers < 2 or not project.is_a(owner, "IterableDataset"):
            continue
        method = project.find_method(owner, "__iter__")
        text = " ".join(text_of(project, c) for c in project.bases(owner))
        if method is None or _started(project, call):
            continue
        said = f"each of the {workers} workers yields every sample"
        if not SHARDS.search(text) and not RANDOM.search(text_of(project, method)):
            yield sighting(
                __name__, (method.node, method), f"{said}: nothing here asks which worker it is", proof=[call]
            )
        elif (walk := whole_walk(project, method)) is not None:
            place = numbered(project, walk, method)
            yield sighting(__name__, place, f"{said}: its number decides about none of them", proof=[call])


def _started(project: Project, call: Call) -> bool:
    """True where the function that starts a worker may give it its part of the data."""
    start = option(project, call, "worker_init_fn")
    if start is None or only(project, start) is None:
        return False
    made = project.resolve(*start)
    if not isinstance(made, Scope) or made.kind == "class":
        return True
    return ".dataset" in text_of(project, made)
