"""Rollouts of several copies of a world: moments that were stacked along the first axis for some values and along the
second for others, and flattened alike."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.flattening import FLATTENS, SAME, from_first, moved, rows_apart, sliced_only
from trainwreck.code.rehearsal.questions.roles import trained

PAIRS = frozenset("sub mul div mse_loss l1_loss smooth_l1_loss huber_loss minimum maximum min max".split())
"""What puts the rows of two arrays together, each with its own."""
MADE = frozenset(["stack", "tensor", "as_tensor", "array", "asarray"])
FILLED = frozenset(["zeros", "empty", "ones", "full", "zeros_like", "empty_like"])
KEEPS = SAME | frozenset(
    ["flip", "cumsum", "from_numpy", "to", "astype", "numpy", "setitem", "square", "log", "ne", "eq"]
)
STOPS = frozenset(["param", "batch"])
DEPTH = 40
AXES = 3

Time = tuple[int, Node]
"""The axis of the moments, and what put them there."""


def stacked_apart(run: Rehearsing) -> Iterator[Answer]:
    """Of one value the moments come first in the flattened rows, of its partner the copies."""
    known: dict[int, Time | None] = {}
    flats: dict[int, tuple[Node, Time]] = {}
    apart, copies = False, set[int | None]()
    for node in trained(run):
        sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
        if node.op not in PAIRS or len(sides) != 2:
            continue
        orders: list[set[int]] = []
        for side in sides:
            found = [(f, t) for f in _flats(side) if (t := _slowest(f, known)) is not None]
            flats |= {id(f): (f, t) for f, t in found}
            orders.append({t[0] for _, t in found})
            copies |= {_copies(t) for _, t in found}
        apart = apart or (len(orders[0]) == len(orders[1]) == 1 and orders[0] | orders[1] == {0, 1})
    if not apart or len(copies) > 1 or None in copies or next(iter(rows_apart(run)), None) is not None:
        return
    groups: dict[int, list[Time]] = {0: [], 1: []}
    for _, (axis, maker) in flats.values():
        if not any(m is maker for _, m in groups[axis]):
            groups[axis].append((axis, maker))
    few, many = sorted(groups.values(), key=lambda g: (len(g), -max(m.serial for _, m in g)))
    for _, maker in sorted(few, key=lambda t: t[1].serial)[:1]:
        if maker.place is not None:
            text = (
                "the moments are put along another axis here than those of what it is used with: flattened, the rows "
                "belong to other moments"
            )
            proof = many[0][1].place
            yield Answer(maker.place, text, (proof,) if proof is not None else ())


def _copies(time: Time) -> int | None:
    """How many copies of the world each moment holds: what is stacked may as well be the series of single copies."""
    axis, maker = time
    if maker.op == "setitem":
        base = maker.shape.dims
        return base[1 - axis] if len(base) > 1 and not maker.shape.open else None
    first = maker.inputs[0]
    sizes = {n.shape.dims[0] for n in parts(first) if n.shape.dims and not n.shape.open}
    return sizes.pop() if len(sizes) == 1 else None


def _single(node: Node) -> bool:
    return not node.shape.open and not node.shape.dims


def _flats(value: Node) -> Iterator[Node]:
    """What makes one axis of two behind a value, as far as each of its rows goes back to one there."""
    for node in ancestors(value, through=lambda n: not (_flat(n) or _put_behind(n) or _single(n) or n.op in STOPS)):
        if _flat(node) or _put_behind(node):
            yield node


def _put_behind(node: Node) -> bool:
    """``cat`` of what the moments gave: those of one moment, then those of the next."""
    first = node.inputs[0] if node.op in ("cat", "concat", "concatenate") and node.inputs else None
    along = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else 0))
    return isinstance(first, Items) and first.more and along == 0 and len(node.shape.dims) == _rank(first)


def _rank(listed: Items) -> int:
    ranks = {len(i.shape.dims) if isinstance(i, Node) and not i.shape.open else 0 for i in listed.items}
    return ranks.pop() if len(ranks) == 1 else 0


def _slowest(flat: Node, known: dict[int, Time | None]) -> Time | None:
    return (0, flat) if _put_behind(flat) else _time(flat.inputs[0], known, 0)


def _flat(node: Node) -> bool:
    first = node.inputs[0] if node.op in FLATTENS and node.inputs else None
    if not isinstance(first, Node):
        return False
    if first.shape.open or node.shape.open:
        return from_first(node)
    before, after = len(first.shape.dims), len(node.shape.dims)
    return after == before - 1 or (before == after == 2 and node.shape.dims[1] == 1 and first.shape.dims[1] != 1)


def _time(value: Value, known: dict[int, Time | None], depth: int) -> Time | None:
    """The axis of the moments; None where it isn't known."""
    if not isinstance(value, Node) or depth > DEPTH:
        return None
    if id(value) not in known:
        known[id(value)] = None
        known[id(value)] = _found(value, known, depth + 1)
    return known[id(value)]


def _found(node: Node, known: dict[int, Time | None], depth: int) -> Time | None:
    first = node.inputs[0] if node.inputs else None
    if node.op in MADE and isinstance(first, Items):
        axis = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else 0))
        axis = axis if node.op == "stack" else 0
        inner = [i for i in first.items if isinstance(i, Node)]
        wide = bool(inner) and all(not i.shape.open and i.shape.dims for i in inner)
        if not first.more or not wide or not isinstance(axis, int):
            return None
        axis = axis if axis >= 0 else axis + len(inner[0].shape.dims) + 1
        return (axis, node) if axis in (0, 1) else None
    if node.op == "setitem" and len(node.inputs) > 2 and (axis_ := _filled(node)) is not None:
        return axis_, node
    if node.op == "either":
        found = {t for c in candidates(node) if (t := _time(c, known, depth)) is not None}
        return found.pop() if len(found) == 1 else None
    if node.op == "getitem":
        return _time(first, known, depth) if sliced_only(node) else None
    for axis in range(AXES):
        before = moved(node, axis)
        if before is not None and (inner_ := _time(first, known, depth)) is not None and inner_[0] == before:
            return axis, inner_[1]
    if node.op not in KEEPS or node.op in ("linear", "embedding", "lstm", "gru", "rnn", "part"):
        return None
    times = [t for i in node.inputs if isinstance(i, Node) and (t := _time(i, known, depth)) is not None]
    return times[0] if times and len({axis for axis, _ in times}) == 1 else None


def _filled(node: Node) -> int | None:
    """The axis along which the turns of a loop fill an array: ``x[t] = ...``, ``x[:, t] = ...``."""
    base = node.inputs[0]
    while isinstance(base, Node) and base.op == "setitem":
        base = base.inputs[0]
    if not isinstance(base, Node) or base.op not in FILLED or base.shape.open or len(base.shape.dims) < 2:
        return None
    index = node.inputs[2]
    picks = list(index) if isinstance(index, tuple) else [index]
    counted = [any(n.op == "counter" for n in near(p, 4)) if any(True for _ in parts(p)) else False for p in picks]
    return counted.index(True) if sum(counted) == 1 and counted.index(True) < 2 else None


__all__ = ["stacked_apart"]
