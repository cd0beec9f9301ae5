"""Running sums and products along the samples of a batch: what a sample gets depends on which ones stand before it."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along, batch_first
from trainwreck.code.rehearsal.questions.roles import trained, users
from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis

RUNNING = frozenset(["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
ORDERED = frozenset(["sort", "argsort", "sorted", "topk", "lexsort", "searchsorted", "unique", "msort"])
DRAWN = frozenset(["randperm", "permutation", "randint", "choice", "integers", "sample", "multinomial"])

NEAREST = 12
"""Values behind an index that are looked through for the draw: it is cut and moved a few times."""


def from_sample_to_sample(run: Rehearsing) -> Iterator[Answer]:
    """What a network gives is added up from one drawn sample to the next, where each holds several values of its own.

    Meant where samples were sorted before (a partial likelihood, sums of segments)."""
    for node in trained(run):
        inner = node.inputs[0] if node.inputs else None
        if node.op not in RUNNING or node.place is None or not node.grad or not isinstance(inner, Node):
            continue
        shape, at = inner.shape, along(node)
        if shape.open or len(shape.dims) < 2 or at not in (0, -len(shape.dims)) or 1 in shape.dims:
            continue
        if not (sample_axis(run, inner) == 0 or batch_first(inner)) or _cut(run, node):
            continue
        behind = list(ancestors(inner))
        if any(_drawn(n) for n in behind) and not any(n.op in ORDERED for n in behind):
            yield Answer(node.place, "this runs over axis 0, from one sample of the batch to the next, not within each")
            return


def _drawn(node: Node) -> bool:
    """True for rows in an order that is drawn: a batch of a loader that shuffles, ``x[randperm(n)[:64]]``."""
    if node.op == "batch":
        return node.owner is not None and node.owner.get("shuffle", 2) is True
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    index = index[0] if isinstance(index, tuple) and index else index
    return isinstance(index, Node) and any(n.op in DRAWN for n in near(index, NEAREST))


def _cut(run: Rehearsing, node: Node) -> bool:
    """True where the ends of segments are picked out of the sums: ``sums[ends[1:]] - sums[ends[:-1]]``."""
    for user in users(run).get(id(node), ()):
        if user.op == "index_select" or (user.op == "getitem" and isinstance(user.inputs[1], Node)):
            return True
    return False


__all__ = ["from_sample_to_sample"]
