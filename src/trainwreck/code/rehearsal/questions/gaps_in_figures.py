"""Means and spreads of data into which NaN was written on purpose (what is missing): they are NaN themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import External, Node, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import MASKS, RANDOM
from trainwreck.code.rehearsal.questions.roles import JOINS, core, trained

FIGURES = frozenset("mean std var median min max amin amax sum percentile quantile average ptp norm".split())
"""What is NaN where one of its numbers is, in numpy and torch; tables of pandas leave NaN out by themselves."""
KEEPS = frozenset(
    """astype float double float32 float64 to from_numpy tensor as_tensor array asarray clone copy contiguous detach
    pin_memory cpu cuda numpy T transpose batch element part getitem view reshape squeeze unsqueeze flatten take
    index_select ascontiguousarray stack""".split()
)
SCALES = frozenset(["sub", "div", "add", "mul", "column_stack", "either", *JOINS])
LAYERS = frozenset(["linear", "conv1d", "conv2d", "lstm", "gru", "rnn", "batch_norm", "layer_norm"])
TESTS = frozenset(["isnan", "isfinite"])
MAX_DEPTH = 60


def hidden_gaps(run: Rehearsing) -> Iterator[Answer]:
    """What these figures scaled is made finite afterwards: whole columns become one number, and nobody hears of it."""
    for figure, written, cleaned in _figures(run):
        if cleaned is not None and figure.place is not None:
            text = (
                f"NaN was put into these data, so the {figure.op} of each such column is NaN: what is scaled with it "
                "is NaN as a whole, and is then replaced by one number (nanmean, nanstd leave NaN out)"
            )
            yield Answer(figure.place, text, tuple(p for p in (written.place, cleaned.place) if p is not None))
            return


def open_gaps(run: Rehearsing) -> Iterator[Answer]:
    """What these figures scaled or filled goes into the network as it is: NaN."""
    for figure, written, cleaned in _figures(run):
        if cleaned is None and figure.place is not None:
            text = (
                f"NaN was put into these data, so their {figure.op} is NaN, and so are the inputs that are made with it"
            )
            yield Answer(figure.place, text, (written.place,) if written.place is not None else ())
            return


def _figures(run: Rehearsing) -> Iterator[tuple[Node, Node, Node | None]]:
    """A figure that is NaN on the way of the training's inputs, where NaN was written, and what cleans up behind it."""
    if not any(_writes(n) for n in run.nodes):
        return
    seen: set[tuple[int, int]] = set()
    for layer in trained(run):
        given = layer.inputs[0] if layer.op in LAYERS and layer.inputs else None
        if isinstance(given, Node) and not given.grad:
            yield from _behind(given, None, seen, 0)


def _behind(
    node: Node, cleaned: Node | None, seen: set[tuple[int, int]], depth: int
) -> Iterator[tuple[Node, Node, Node | None]]:
    if depth > MAX_DEPTH or (id(node), id(cleaned)) in seen or not node.inputs:
        return
    seen.add((id(node), id(cleaned)))
    if node.op in FIGURES:
        written = _gaps(node.inputs[0]) if "where" not in node.options else None
        if written is not None:
            yield node, written, cleaned
        return
    for value, now in _on(node, cleaned):
        for inner in parts(value):
            yield from _behind(inner, now, seen, depth + 1)


def _on(node: Node, cleaned: Node | None) -> list[tuple[Value, Node | None]]:
    """The values that ``node`` is made of, each with what has taken NaN out of it since."""
    first, rest = node.inputs[0], node.inputs[1:]
    if node.op in ("nan_to_num", "nan_to_num_"):
        return [(first, node)]
    if node.op == "where" and len(rest) > 1:
        return [(branch, node if _tests(first, branch) else cleaned) for branch in rest[:2]]
    if node.op == "setitem" and len(rest) > 1:
        index = rest[1]
        return [(first, node if _tests(index, first) else cleaned), (rest[0], cleaned)]
    if node.op in ("masked_fill", "masked_fill_") and rest:
        return [(first, node if _tests(rest[0], first) else cleaned)]
    if node.op in KEEPS:
        return [(first, cleaned)]
    return [(i, cleaned) for i in node.inputs] if node.op in SCALES else []


def _tests(mask: Value, value: Value) -> bool:
    """True for a mask of what is NaN in ``value``."""
    own = {id(n) for n in core(value)}
    tests = [n for p in parts(mask) for n in near(p, 4) if n.op in TESTS]
    return any(id(c) in own for t in tests for i in t.inputs for c in core(i))


def _gaps(table: Value) -> Node | None:
    """Where NaN was written into an array, if nothing has taken it out since."""
    for _ in range(MAX_DEPTH):
        if not isinstance(table, Node) or not table.inputs:
            return None
        if _writes(table):
            return table if _array(table) else None
        index = table.inputs[-1] if table.op in ("getitem", "setitem") else None
        if table.op == "setitem":
            inner = table.inputs[1]
            if isinstance(inner, Node) and _writes(inner):  # x[:, :3][mask] = nan
                return table if _array(table) else None
            if not isinstance(index, tuple) or not all(isinstance(i, int) for i in index[1:]):
                return None
        elif table.op not in KEEPS or isinstance(index, tuple | str) or _masked(index):
            return None
        table = table.inputs[0]
    return None


def _masked(index: Value) -> bool:
    """True for rows that passed a test: those with NaN may be left out."""
    return any(
        n.op in MASKS | TESTS | {"any", "all", "nonzero", "flatnonzero"} for p in parts(index) for n in near(p, 8)
    )


def _writes(node: Node) -> bool:
    """True for an operation that puts NaN into some places of an array."""
    if node.op == "setitem" and len(node.inputs) > 1:
        return _is_nan(node.inputs[1])
    if node.op == "where" and len(node.inputs) > 2:
        return any(_is_nan(i) for i in node.inputs[1:3])
    return node.op in ("masked_fill", "masked_fill_") and len(node.inputs) > 2 and _is_nan(node.inputs[2])


def _is_nan(value: Value) -> bool:
    if isinstance(value, External):
        return value.dotted in ("numpy.nan", "numpy.NaN", "math.nan", "torch.nan")
    return isinstance(value, float) and math.isnan(value)


def _array(node: Node) -> bool:
    """True for an array of numpy or torch that the program made itself."""
    at: Value = node
    for _ in range(MAX_DEPTH):
        if not isinstance(at, Node):
            return False
        if at.op in RANDOM or at.op in ("zeros", "ones", "full", "empty", "linspace", "arange"):
            return True
        if at.op == "where" and len(at.inputs) > 2:
            at = next((i for i in at.inputs[1:3] if isinstance(i, Node)), None)
        elif at.op == "setitem" or at.op in KEEPS or at.op in SCALES or at.op.startswith("masked_fill"):
            at = next(iter(parts(at.inputs[0])), None) if at.inputs else None
        else:
            return at.full.startswith(("numpy.", "torch."))
    return False


__all__ = ["hidden_gaps", "open_gaps"]
