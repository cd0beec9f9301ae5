"""Means over the members of a group (a code, a cluster, a class) that can have no members in a batch."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained, users
from trainwreck.code.rehearsal.questions.terms import axes

NEAREST = frozenset(["argmin", "argmax", "min", "max", "topk", "multinomial"])
COUNTS = frozenset(["bincount", "scatter_add", "index_add", "scatter_reduce", "scatter_add_", "index_add_"])
GUARDS = frozenset(["where", "nan_to_num", "masked_fill", "isnan", "isfinite", "masked_select", "nanmean", "setitem"])
WAY = 3


def empty_groups(run: Rehearsing) -> Iterator[Answer]:
    """A division by how many values were assigned to each group, with nothing that keeps it from zero."""
    told: set[int] = set()
    kept = _kept(run)
    for node in run.nodes:
        if node.op != "div" or len(node.inputs) < 2 or node.place is None or node.maybe or id(node.place[0]) in told:
            continue
        counted = _counted(node.inputs[1])
        if counted is None or not any(id(n) in kept for n in _after(run, node)):
            continue
        if any(n.op in GUARDS or (n.op == "getitem" and _masked(n)) for n in _after(run, node)):
            continue
        told.add(id(node.place[0]))
        text = "a group without members in this batch gives 0/0 here, and NaN stays in what is kept"
        yield Answer(node.place, text, (counted.place,) if counted.place is not None else ())


def _kept(run: Rehearsing) -> set[int]:
    """Values that are written into parameters, buffers or attributes, or that a backward goes through."""
    found = {id(n) for n in trained(run)}
    for node in run.nodes:
        found |= {id(n) for e in node.writes for a in e.args for n in parts(a)}
    for event in run.tape:
        old = event.options.get("old") if event.name == "set" else None
        if isinstance(old, Node):
            found |= {id(n) for a in event.args[1:] for n in parts(a)}
    return found


def _after(run: Rehearsing, node: Node) -> list[Node]:
    found, level = [node], [node]
    for _ in range(WAY):
        level = [u for one in level for u in users(run).get(id(one), ())]
        found += level
    return found


def _masked(node: Node) -> bool:
    """True for a selection by a test."""
    return any(n.op in ("gt", "ge", "ne", "lt", "bool") for i in node.inputs[1:] for n in parts(i))


def _counted(value: Value) -> Node | None:
    """The count of members of each group that a divisor is, without a floor; None for anything else."""
    at = next(iter(parts(value)), None)
    for _ in range(8):
        if at is None or not at.inputs:
            return None
        if at.op == "sum":
            hot = next(iter(parts(at.inputs[0])), None)
            return at if hot is not None and axes(at) in ((0,), (0, 1)) and _assigned(hot) else None
        if at.op in COUNTS:
            given = [n for i in (*at.inputs, *at.options.values()) for n in parts(i)]
            return at if any(_nearest(n) for n in given) and not _floored(at.inputs[0]) else None
        if at.op not in STRUCTURE:
            return None
        at = next(iter(parts(at.inputs[0])), None)
    return None


def _floored(value: Value) -> bool:
    return isinstance(value, Node) and value.op in ("full", "ones", "ones_like", "full_like", "add")


def _assigned(node: Node) -> bool:
    """True for a table of assignments: a one-hot of nearest codes, or what was scattered by them."""
    for inner in ancestors(node, through=lambda n: n.op in STRUCTURE):
        if inner.op in ("one_hot", "scatter", "scatter_"):
            return any(_nearest(n) for i in (*inner.inputs, *inner.options.values()) for n in parts(i))
    return False


def _nearest(node: Node) -> bool:
    """True for the index of a nearest code, reshaped at most."""
    return any(n.op in NEAREST for n in ancestors(node, through=lambda n: n.op in STRUCTURE or n.op == "part"))
