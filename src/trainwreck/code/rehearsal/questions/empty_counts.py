"""Shares of what a network chooses: an expert, a code or a class that nobody picks has a share of exactly zero."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import MASKS
from trainwreck.code.rehearsal.questions.roles import RAW, core, trained, users

CHOICES = frozenset(["argmax", "argmin", "topk", "max", "min", "multinomial"])
FEW = 40
"""Values that are looked through for the choice: counting it takes a few steps."""


def log_of_share(run: Rehearsing) -> Iterator[Answer]:
    """``-(share * share.log()).sum()`` over what was chosen: zero times minus infinity is NaN."""
    for node in run.nodes:
        if node.op not in ("log", "log2") or node.place is None or not node.inputs:
            continue
        share = _shares(node.inputs[0])
        own = {id(n) for n in (*core(node.inputs[0]), *((share,) if share is not None else ()))}
        itself = any(
            user.op == "mul" and any(id(n) in own for i in user.inputs if i is not node for n in core(i))
            for user in users(run).get(id(node), ())
        )
        if share is not None and itself:
            text = "a choice that nobody makes has a share of zero: zero times its logarithm is NaN"
            yield Answer(node.place, text, (share.place,) if share.place is not None else ())


def divided_by_share(run: Rehearsing) -> Iterator[Answer]:
    """A term of the loss is divided by how often each choice was made."""
    for node in trained(run):
        if node.op != "div" or node.place is None or len(node.inputs) < 2:
            continue
        share = _shares(node.inputs[1])
        if share is not None:
            text = "a choice that nobody makes in this batch counts zero, and the loss is divided by it"
            yield Answer(node.place, text, (share.place,) if share.place is not None else ())


def rows_without_any(run: Rehearsing) -> Iterator[Answer]:
    """Each row of marks that are drawn one by one (clicks, links, tags) is divided by how many there are in it."""
    feeding = {id(n) for e in run.tape if e.name == "backward" for n in ancestors(e.subject)}
    for node in run.nodes:
        count = node.inputs[1] if node.op == "div" and len(node.inputs) > 1 else None
        if not isinstance(count, Node) or count.op != "sum" or node.place is None or not count.inputs:
            continue
        axis = count.options.get("dim", count.options.get("axis", (*count.inputs, None)[1]))
        if axis in (1, -1, 2) and id(node) in feeding and _each_drawn(count.inputs[0]):
            text = "rows are divided by how many marks they hold: a row without any is 0 / 0"
            yield Answer(node.place, text, (count.place,) if count.place is not None else ())
            return


def _each_drawn(value: Value) -> bool:
    """True for marks of which each is drawn by itself: ``random(shape) < chance``."""
    for _ in range(16):
        node = next(iter(parts(value)), None)
        if node is None:
            return False
        if node.op in ("lt", "le", "gt", "ge"):
            drawn = [i for i in node.inputs[:2] if isinstance(i, Node) and i.op in ("rand", "random", "rand_like")]
            return bool(drawn) and (drawn[0].shape.open or len(drawn[0].shape.dims) > 1)
        if node.op == "bernoulli":
            return True
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        sifted = isinstance(index, Node) and index.op in MASKS  # rows with one may have been picked
        if node.op not in MOVED or not node.inputs or sifted:
            return False
        value = node.inputs[0]
    return False


MOVED = frozenset(
    """tensor as_tensor from_numpy array asarray float double astype to getitem batch element part clone stack
    either""".split()
)


def _shares(value: Value) -> Node | None:
    """The count behind a value, where that is one count for each choice and nothing lifts it off zero."""
    if any(n.op in ("getitem", "masked_select") for n in near(value, 4)):
        return None  # ``share[share > 0]``: zeros are left out
    for _ in range(6):
        inner = core(value)
        node = inner[0] if len(inner) == 1 else None
        if node is None:
            return None
        if node.op == "div" and node.inputs and (len(node.inputs) < 2 or not _counts(node.inputs[1])):
            value = node.inputs[0]
            continue
        if node.op == "bincount" and node.inputs and _chosen(node.inputs[0]):
            return node
        if node.op in ("mean", "sum") and node.inputs and isinstance(node.inputs[0], Node):
            axes = node.options.get("dim", node.options.get("axis", (*node.inputs, None)[1]))
            marks = core(node.inputs[0])
            over_rows = axes in (0, (0,), (0, 1)) and len(marks) == 1 and marks[0].op == "one_hot"
            return node if over_rows and _chosen(marks[0].inputs[0]) else None
        return None
    return None


def _counts(value: Value) -> bool:
    return isinstance(value, Node) and value.op in ("bincount",)


def _chosen(value: Value) -> bool:
    """True for an index that comes from the outputs of a layer."""
    found = near(value, FEW)
    return any(n.op in CHOICES for n in found[:12]) and any(n.op in RAW for n in found)
