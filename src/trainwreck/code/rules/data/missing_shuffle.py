"""Sorted data are trained on in order.

What: the training loader does not shuffle, and the labels of its data set are sorted where they are made; or batches
are cut from samples that are sorted by length, and not mixed.
Why it matters: each batch holds one class; the network follows the block it sees.
When it is fine: for evaluation, streams, time series that are meant in order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.buckets import unmixed_buckets
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import back
from trainwreck.code.order import training_steps
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.blocks import sorted_batches
from trainwreck.code.rehearsal.questions.sorted_by_target import sorted_by_target
from trainwreck.code.rehearsal.questions.unmixed import counted_up
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import LOADERS, is_training_loader, loaders
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

BAD = """
import numpy as np
from torch.utils.data import DataLoader, TensorDataset
def make(n, rng):
    y = np.sort(rng.integers(0, 5, n))
    x = np.stack([draw(k) for k in y])
    return TensorDataset(x, y)
def main(model, opt, rng):
    train_loader = DataLoader(make(100, rng), batch_size=8)  # expect
    test_loader = DataLoader(make(20, rng), batch_size=8)
    for x, y in train_loader:
        model(x, y).backward()
        opt.step()
"""
GOOD = """
import numpy as np
from torch.utils.data import DataLoader, TensorDataset
def make(n, rng):
    y = np.sort(rng.integers(0, 5, n))
    return TensorDataset(np.ones((n, 2)), y)
def plain(n, rng):
    return TensorDataset(np.ones((n, 2)), rng.integers(0, 5, n))
def main(model, opt, rng):
    train_loader = DataLoader(make(100, rng), batch_size=8, shuffle=True)
    other_train = DataLoader(plain(100, rng), batch_size=8)
    test_loader = DataLoader(make(20, rng), batch_size=8)
    for x, y in train_loader:
        model(x, y).backward()
    for x, y in other_train:
        model(x, y).backward()
    for x, y in test_loader:
        model(x, y)
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(further(__name__, project, _written(project), sorted_batches))
    found = found or list(further(__name__, project, (), counted_up, sorted_by_target))
    yield from found or _buckets(project)


def _buckets(project: Project) -> Iterator[Evidence]:
    for cut in unmixed_buckets(project):
        text = "batches are cut from samples sorted by length, and come in that order in each epoch"
        yield sighting(__name__, (cut.node, cut.scope), text, proof=[Call(cut.sort, cut.sort_scope)])


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for training in training_steps(project):
        loop = training.loop
        if not isinstance(loop, ast.For):
            continue
        for step in back(project, loop.iter, training.scope):
            node = step.node
            if not isinstance(node, ast.Call) or last_name(node.func) not in LOADERS or id(node) in told:
                continue
            call = Call(node, step.scope)
            if _shuffles(call):
                continue
            source = _sorted_labels(project, call)
            if source is not None:
                told.add(id(node))
                yield sighting(__name__, call, "the data are sorted and this loader does not shuffle", proof=[source])


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in loaders(project, surface):
        if not _shuffles(call) and (is_training_loader(project, call) or len(loaders(project)) == 1):
            yield guess(__name__, call, "this loader does not shuffle")
            return
    for call in loaders(project, surface):
        if not _shuffles(call):
            yield guess(__name__, call, "this loader does not shuffle")
            return


def _shuffles(call: Call) -> bool:
    given = call.argument("shuffle", 2)
    if given is not None and not (isinstance(given, ast.Constant) and not given.value):
        return True
    return is_true(given) or call.open_ended or any(call.argument(n) is not None for n in ("sampler", "batch_sampler"))


def _sorted_labels(project: Project, call: Call) -> Call | None:
    """The sort (by class) behind the data set, unless something permutes afterwards."""
    dataset = call.argument("dataset", 0)
    if dataset is None:
        return None
    for step in back(project, dataset, call.scope, ("*",)):
        node = step.node
        if not isinstance(node, ast.Call):
            continue
        chain = " ".join(written(s.node) for s in step.chain())
        if any(word in chain for word in ("permutation", "randperm", "shuffle", "random_split", "sample(", "choice")):
            continue
        if last_name(node.func) in ("sort", "sorted") and not re.search(
            r"key=len|listdir|glob|set\(|QUEUE|names|keys", written(node)
        ):
            return Call(node, step.scope)
    return None
