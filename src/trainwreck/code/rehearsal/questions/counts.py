"""How often things happen: turns of loops, batches of loaders, and the numbers that schedules are given."""

from __future__ import annotations

import ast
import math
from contextlib import suppress

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Table, Turn, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.library.data import LOADERS

MAX_DEPTH = 16
CURVES = {"cos": math.cos, "sin": math.sin, "exp": math.exp, "sqrt": math.sqrt, "log": math.log}


def number(run: Rehearsing, value: Value, depth: int = 0) -> float | None:
    """What a value is as a number, through arithmetic and the lengths of loaders; None where it isn't known."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    if not isinstance(value, Node) or depth > MAX_DEPTH:
        return None
    if value.op == "len" and value.inputs:
        return length(run, value.inputs[0])
    if value.op in ("int", "round", "ceil", "floor") and value.inputs:
        known = number(run, value.inputs[0], depth + 1)
        return known if known is None else float(math.ceil(known) if value.op == "ceil" else math.floor(known))
    if value.op == "neg" and value.inputs:
        known = number(run, value.inputs[0], depth + 1)
        return None if known is None else -known
    if value.op in CURVES and value.inputs:
        known = number(run, value.inputs[0], depth + 1)
        with suppress(ValueError, OverflowError):
            return None if known is None else CURVES[value.op](known)
        return None
    if value.op in ("max", "min") and value.inputs:
        known_all = [number(run, i, depth + 1) for i in value.inputs]
        return None if None in known_all else {"max": max, "min": min}[value.op](k for k in known_all if k is not None)
    if value.op in ("mul", "add", "sub", "div", "floor_divide") and len(value.inputs) >= 2:
        one, other = (number(run, i, depth + 1) for i in value.inputs[:2])
        if one is None or other is None or (other == 0 and "div" in value.op):
            return None
        return {
            "mul": one * other,
            "add": one + other,
            "sub": one - other,
            "div": one / other if other else 0.0,
            "floor_divide": one // other if other else 0.0,
        }[value.op]
    return None


ASSUMED = "assumed lengths"
"""Key of lengths, by ``id``, that a question supposes for loaders of which nothing is known."""


def length(run: Rehearsing, value: Value, depth: int = 0) -> float | None:
    """How many elements going through ``value`` gives."""
    known = _length(run, value, depth)
    return known if known is not None else run.memo.get(ASSUMED, {}).get(id(value))


def _length(run: Rehearsing, value: Value, depth: int) -> float | None:
    if depth > 2 * MAX_DEPTH:
        return None
    known = [c for c in candidates(value) if c is not None]
    if len(known) != 1:
        return None
    value = known[0]
    match value:
        case tuple():
            return len(value)
        case Items():
            if not value.more:
                return len(value.items)
            if value.length is not None:
                return value.length
            if len(value.columns) > 1:
                lengths = [length(run, c, depth + 1) for c in value.columns]
                return None if None in lengths else min(n for n in lengths if n is not None)
            beside = value.source if value.source is not None else value.pace
            return length(run, beside, depth + 1) if beside is not None else _appended(run, value)
        case Table():
            return None if value.more else len(value.entries)
        case Node():
            return _of_node(run, value, depth)
        case Obj() if value.name in LOADERS:
            size, batch = length(run, value.get("dataset", 0), depth + 1), number(run, value.get("batch_size", 1, 1))
            if size is None or not batch:
                return None
            return size // batch if value.options.get("drop_last") is True else math.ceil(size / batch)
        case Obj() if value.name == "TensorDataset" and value.args:
            return length(run, value.args[0], depth + 1)
        case Obj() if value.name == "Subset":
            return length(run, value.get("indices", 1), depth + 1)
        case Obj() if value.cls is not None:
            return number(run, size_of(run, value))
    return None


def size_of(run: Rehearsing, value: Obj) -> Value:
    """What ``__len__`` of an object of the program gives."""
    from trainwreck.code.rehearsal.domain import Bound, Function

    size = value.cls.find("__len__") if value.cls is not None else None
    if not isinstance(size, Function) or value.place is None:
        return None
    before = len(run.tape)
    found = run.call(Bound(size, value), [], {}, value.place, size.frame)
    del run.tape[before:]
    return found


def _of_node(run: Rehearsing, value: Node, depth: int) -> float | None:
    """Along the first axis."""
    if depth > MAX_DEPTH:
        return None
    if value.op == "split" and value.name == "" and len(value.inputs) > 1:
        size, part = length(run, value.inputs[0], depth + 1), value.inputs[1]
        return math.ceil(size / part) if size is not None and isinstance(part, int) and part > 0 else None
    if (
        value.op == "split"
        and value.name.isdigit()
        and len(value.inputs) > 1
        and isinstance(value.inputs[0], Items | tuple)
    ):
        lengths = value.inputs[0].items if isinstance(value.inputs[0], Items) else list(value.inputs[0])
        chosen = lengths[int(value.name)] if int(value.name) < len(lengths) else None
        return number(run, chosen) if isinstance(chosen, int | Node) else None
    if not value.shape.open and value.shape.dims and isinstance(value.shape.dims[0], int):
        return float(value.shape.dims[0])
    first, second = (*value.inputs, None, None)[:2]
    if value.op in ("randperm", "permutation") and value.inputs:
        numbers = [i for i in value.inputs if isinstance(i, int)]
        return float(numbers[0]) if numbers else number(run, first)
    if value.op in ("integers", "randint", "normal", "uniform", "choice") and "size" in value.options:
        size = value.options["size"]
        return number(run, size[0] if isinstance(size, tuple) and size else size)
    if value.op in ("stack", "vstack", "array", "asarray", "tensor", "as_tensor") and isinstance(first, Items | tuple):
        along = value.options.get("dim", value.options.get("axis", second if isinstance(second, int) else 0))
        return length(run, first, depth + 1) if along == 0 or value.op not in ("stack",) else None
    if value.op == "getitem":
        return _selected(run, first, second[0] if isinstance(second, tuple) and second else second, depth)
    if value.op in KEEPS_LENGTH and isinstance(first, Node):
        return _of_node(run, first, depth + 1)
    return None


KEEPS_LENGTH = frozenset(
    """sort from_numpy tensor as_tensor array asarray astype float double long int to copy clone contiguous unsqueeze
    add sub mul div clip clamp abs exp log sqrt sin cos tanh sign round nan_to_num setitem cpu cuda detach numpy
    normalize squeeze expand pad flip""".split()
)
"""Functions of an array that keep its first axis."""


def _selected(run: Rehearsing, base: Value, index: Value, depth: int) -> float | None:
    """How many elements ``base[index]`` has along the first axis."""
    if index is Ellipsis or isinstance(index, str):
        return length(run, base, depth + 1) if index is Ellipsis else None
    if isinstance(index, Obj) and index.kind == "builtins.slice":
        low, high, step = index.args
        whole = length(run, base, depth + 1)
        ends = [0.0 if low is None else number(run, low), whole if high is None else number(run, high)]
        if step is not None or None in ends:
            return None
        one, other = (e if e is None or e >= 0 else (None if whole is None else whole + e) for e in ends)
        if one is None or other is None:
            return None
        return max(0.0, (other if whole is None else min(other, whole)) - one)
    if isinstance(index, Node) and index.op not in (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "and",
        "or",
        "invert",
        "counter",
    ):
        return _of_node(run, index, depth + 1)
    return None


def _appended(run: Rehearsing, items: Items) -> float | None:
    """How long a list gets that loops append to, one element each time."""
    events = [e for e in run.tape if e.subject is items]
    if not events or any(e.name != "append" or e.maybe or e.tests for e in events):
        return None
    shared = 0
    while all(len(e.turns) > shared and e.turns[shared] is events[0].turns[shared] for e in events):
        shared += 1
    total = 0.0
    for event in events:
        weight = 1.0
        for turn in event.turns[shared:]:
            known = trips(run, turn) if turn.generic else 1.0
            if known is None:
                return None
            weight *= max(0.0, known - 1) if turn.generic else 1.0
        total += weight
    return total


def trips(run: Rehearsing, turn: Turn) -> float | None:
    """How often a loop turns."""
    return length(run, turn.over) if turn.over is not None else None


def times(run: Rehearsing, events: list[Event]) -> float | None:
    """How often what these events stand for happens in the whole run, conditions on a count included.

    A loop that is gone through turn by turn has its events on the tape already; of any other there are the first turn
    and one that stands for all later ones."""
    total = 0.0
    for event in events:
        weight = 1.0
        for turn in event.turns:
            if turn.generic:
                known = trips(run, turn)
                if known is None:
                    return None
                weight *= max(0.0, known - 1)
        for test in event.tests:
            every = next((n.inputs[1] for n in ancestors(test) if n.op == "mod" and len(n.inputs) > 1), None)
            known = number(run, every)
            if not known and (not event.turns or event.turns[-1].generic):
                return None
            weight /= known or math.inf  # of the first turn the count is a number: a later turn tells how often
        total += weight
    return total or None


def left_over(run: Rehearsing, call: ast.AST) -> float | None:
    """Which share of a loop's turns comes after the last call that a count lets through; None where it isn't known."""
    for event in run.tape:
        if event.place is None or event.place[0] is not call or not event.turns or not event.tests:
            continue
        every = next(
            (n.inputs[1] for t in event.tests for n in ancestors(t) if n.op == "mod" and len(n.inputs) > 1), None
        )
        known, turned = number(run, every), trips(run, event.turns[-1])
        if known and turned:
            return (turned % known) / turned
    return None


def counts_batches(value: Value) -> bool:
    """True if the length of a loader or of the data went into a number."""
    return any(n.op == "len" for n in ancestors(value))
