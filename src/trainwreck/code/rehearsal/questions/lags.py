"""Series: how far the features of an element reach ahead, against the element that is to be predicted."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import meets, statistic
from trainwreck.code.rehearsal.questions.roles import JOINS, backwards

NOWHERE = -math.inf
"""It does not hold the series at all."""
ELEMENTWISE = frozenset(
    """add sub mul div neg abs sqrt log log1p exp square pow tanh sin cos clip clamp maximum minimum astype float
    double copy asarray array tensor as_tensor from_numpy ascontiguousarray numpy to nan_to_num fillna where""".split()
)
RUNNING = frozenset(["cumsum", "cumprod", "nancumsum", "cummax", "lfilter", "ewm", "accumulate"])
"""What gathers all elements up to each."""
NUMBERS = frozenset(["mean", "sum", "std", "var", "min", "max", "median"])


def reaching_the_target(run: Rehearsing) -> Iterator[Answer]:
    """A running mean or sum of the predicted series, of which the last element is the target itself.

    Asked only where other features stop before the target: then it is a forecast."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            targets = [t for node in outside for t in _indexed(node)]
            features = [f for node in inside for f in _indexed(node)] if targets else []
            for series, base, ahead, _ in targets:
                mine = [(f, reach) for f in features if f[1] == base and (reach := _reach(f, series)) > NOWHERE]
                before = any(reach < ahead for _, reach in mine)
                late = [f for f, reach in mine if reach >= ahead and _gathers(f[0], series)]
                last = _first_late(late, [f for f, _ in mine])
                if before and last is not None and last.place is not None:
                    text = "this running value of the series already holds the element that is to be predicted"
                    yield Answer(last.place, text, tuple(p for p in [event.place] if p is not None))
                    return


def _first_late(late: list[Indexed], mine: list[Indexed]) -> Node | None:
    """The first indexing that reaches too far and is not moved back by a later one."""
    for *_, node in late:
        if any(n is node for *_, other in mine if other is not node for n in ancestors(other)):
            continue
        behind = {id(n) for n in ancestors(node)}
        return [n for *_, n in late if id(n) in behind][-1]
    return None


Indexed = tuple[Node, object, int, Node]
"""An array, what it is indexed along, how many elements ahead, and the indexing."""


def _indexed(value: Node) -> list[Indexed]:
    found: list[Indexed] = []
    for node in ancestors(value, through=lambda n: n.op != "param" and not _of_everything(n)):
        if node.op == "getitem" and len(node.inputs) > 1 and isinstance(node.inputs[0], Node):
            at = _along(node.inputs[1])
            if at is not None:
                found.append((node.inputs[0], *at, node))
    return found


def _of_everything(node: Node) -> bool:
    """A number or row for the whole series; the mean of each window is none."""
    return statistic(node) and not any(
        n.op in ("rolling", "ewm", "sliding_window_view") for n in ancestors(node, through=_plainly)
    )


def _plainly(node: Node) -> bool:
    return node.op in ELEMENTWISE or node.op in NUMBERS or node.op == "getitem"


def _along(index: Value, depth: int = 0) -> tuple[object, int] | None:
    """(base, offset) of ``t``, ``t - 3``, ``maximum(t - 3, 0)`` and ``5:``."""
    if isinstance(index, Obj) and index.kind == "builtins.slice":
        start, step = index.args[0], index.args[2]
        shift = 0 if start is None else start
        return ("position", shift) if isinstance(shift, int) and shift >= 0 and step is None else None
    if not isinstance(index, Node) or depth > 8 or not index.inputs:
        return None
    if index.op == "arange":
        given = index.inputs[: len(index.inputs) - len(index.options)]
        return ("position", 0) if len(given) == 1 or given[:1] == (0,) else (id(index), 0)
    first, second = (*index.inputs, None)[:2]
    if index.op in ("add", "sub") and isinstance(second, int):
        at = _along(first, depth + 1)
        return (at[0], at[1] + (second if index.op == "add" else -second)) if at is not None else None
    if index.op == "add" and isinstance(first, int):
        at = _along(second, depth + 1)
        return (at[0], at[1] + first) if at is not None else None
    if index.op in ("maximum", "minimum", "clip", "clamp", "long", "int", "astype"):
        return _along(first, depth + 1)
    return None


def _reach(feature: Indexed, series: Node) -> float:
    """The last element of the series in the feature, counted from the base; NOWHERE where that is not known."""
    inner = _last(feature[0], series, 0)
    return NOWHERE if inner is None else inner + feature[2]


def _gathers(value: Node, series: Node) -> bool:
    """True where a running operation lies between the two."""
    between = ancestors(value, through=lambda n: n is not series)
    return any(n.op in RUNNING or n.op in ("rolling", "sliding_window_view") for n in between if n is not series)


def _last(value: Value, series: Node, depth: int) -> float | None:
    """How far element p of the value reaches: to element p + that of the series. None where it is not known."""
    if not isinstance(value, Node):
        return NOWHERE
    if value is series:
        return 0
    if depth > 40 or not any(n is series for n in ancestors(value)):
        return None if depth > 40 else NOWHERE
    inputs = value.inputs
    first = inputs[0] if inputs else None
    if value.op in RUNNING or value.op in ELEMENTWISE:
        sides = [_last(i, series, depth + 1) for i in inputs]
        known = [s for s in sides if s is not None]
        return max(known, default=NOWHERE) if len(known) == len(sides) else None
    if value.op in ("shift", "roll") and isinstance(first, Node):
        count = value.options.get("shift", value.options.get("periods", inputs[1] if len(inputs) > 1 else 1))
        return _moved(_last(first, series, depth + 1), -count) if isinstance(count, int) else None
    if value.op == "rolling" and not {"center", "closed"} & value.options.keys():
        return _last(first, series, depth + 1)
    if value.op == "sliding_window_view" and isinstance(count := (*inputs, None)[1], int):
        return _moved(_last(first, series, depth + 1), count - 1)
    if value.op in NUMBERS and isinstance(first, Node) and first.op in ("rolling", "ewm", "sliding_window_view"):
        return _last(first, series, depth + 1)
    if value.op == "getitem" and len(inputs) > 1:
        at = _along(inputs[1])
        return _moved(_last(first, series, depth + 1), at[1]) if at is not None and at[0] == "position" else None
    if value.op in JOINS and value.op not in ("stack", "vstack"):
        return _behind_padding(first, series, depth)
    return None


def _moved(reach: float | None, by: int) -> float | None:
    return reach + by if reach is not None else None


def _behind_padding(joined: Value, series: Node, depth: int) -> float | None:
    """``concatenate([padding, values])``: the values are pushed back by the length of the padding."""
    items = list(joined) if isinstance(joined, tuple) else joined.items if isinstance(joined, Items) else []
    if len(items) != 2 or (isinstance(joined, Items) and joined.more):
        return None
    padding, rest = items
    if isinstance(padding, Items | tuple):
        count = len(padding.items) if isinstance(padding, Items) else len(padding)
    elif isinstance(padding, Node) and len(padding.shape.dims) == 1 and not padding.shape.open:
        if padding.shape.dims[0] is None:
            return None
        count = padding.shape.dims[0]
    else:
        return None
    return _moved(_last(rest, series, depth + 1), -count)
