"""Baselines of returns: what is taken off is a mean over the episodes of one time step, or over all of them."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.policy import surrogates
from trainwreck.code.rehearsal.questions.returns import arithmetic, factors
from trainwreck.code.rehearsal.questions.terms import axes

AXES = 2
FEW = 8
MAX_CHAIN = 24
SAME = frozenset("float double to clone contiguous detach numpy from_numpy tensor as_tensor flip identity".split())
"""What leaves each axis where it is."""
TURNS = frozenset(["t", "T", "mT", "transpose", "swapaxes"])


def over_own_time(run: Rehearsing) -> Iterator[Answer]:
    """From the returns to go of several episodes their mean over the steps of one episode is taken off.

    A return falls (or rises) with the steps that are left, so the first actions are always blamed and the last ones
    always praised. Said where the deviation, if there is one, is that of another axis or of all: who standardises each
    episode by itself takes both over time."""
    for event, found in surrogates(run):
        for node in ancestors(found.advantage, through=arithmetic):
            mean = next((n for n in parts(node.inputs[1:2]) if n.op == "mean"), None) if node.op == "sub" else None
            over = axes(mean) if mean is not None else None
            whole = node.inputs[0] if node.inputs else None
            if mean is None or over is None or len(over) != 1 or not isinstance(whole, Node) or mean.place is None:
                continue
            if not mean.inputs or mean.inputs[0] is not whole or whole.shape.open or len(whole.shape.dims) != AXES:
                continue
            if over[0] % AXES != _time(whole) or 1 in whole.shape.dims or _alike(found.advantage, over[0] % AXES):
                continue
            text = "this is the mean over the steps of one episode: it is taken off returns, which differ from step to "
            text += "step, where the mean over the episodes belongs"
            yield Answer(mean.place, text, tuple(p for p in (node.place, event.place) if p is not None))
            return


def _alike(advantage: Value, axis: int) -> bool:
    """True where a deviation is taken over the same axis alone."""
    for node in ancestors(advantage, through=arithmetic):
        over = axes(node) if node.op in ("std", "var") else None
        if over is not None and len(over) == 1 and over[0] % AXES == axis:
            return True
    return False


def _time(returns: Node) -> int | None:
    """The axis along which each value was added up from the one after it."""
    at: Value = returns
    turned = False
    for _ in range(MAX_CHAIN):
        if not isinstance(at, Node) or not at.inputs:
            return None
        axis: int | None = None
        if at.op == "cumsum":
            over = axes(at)
            axis = over[0] % AXES if over is not None else None
        elif at.op == "setitem" and len(at.inputs) > AXES:
            axis = _counted(at.inputs[2]) if _adds_up(at.inputs[1]) else None
        elif at.op in ("stack", "array", "vstack"):
            held = at.inputs[0].items if isinstance(at.inputs[0], Items) else at.inputs[0]
            listed = held if isinstance(held, list | tuple) else []
            over = axes(at)
            if listed and any(_adds_up(i) for i in listed):
                axis = over[0] % AXES if over is not None else 0
        if axis is not None:
            return 1 - axis if turned else axis
        turned = turned != (at.op in TURNS)
        straight = at.op in SAME or at.op in TURNS or at.op == "setitem" or _reversed(at)
        at = at.inputs[0] if straight else None
    return None


def _reversed(node: Node) -> bool:
    return node.op == "getitem" and len(node.inputs) > 1 and getattr(node.inputs[1], "kind", "") == "builtins.slice"


def _counted(index: Value) -> int | None:
    """The axis on which a step's number stands in an index: ``[t]`` or ``[:, t]``."""
    items = index if isinstance(index, tuple) else (index,)
    counts = [isinstance(i, Node) and any(n.op == "counter" for n in near(i, FEW)) for i in items]
    return counts.index(True) if counts.count(True) == 1 and len(counts) <= AXES else None


def _adds_up(value: Value) -> bool:
    """``reward + discount * (the same of the turn before)``: a sum that goes on from turn to turn."""
    if not isinstance(value, Node) or value.op != "add" or not value.turns or value.place is None or value.grad:
        return False
    for item in value.inputs[:2]:
        for inner in factors(item, 0):
            before = inner.inputs if isinstance(inner, Node) and inner.op in ("either", "counter") else (inner,)
            if any(isinstance(b, Node) and b.place is not None and b.place[0] is value.place[0] for b in before):
                return True
    return False
