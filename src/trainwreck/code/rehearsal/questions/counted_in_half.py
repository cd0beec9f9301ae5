"""Positions and running sums in bfloat16 or float16: whole numbers that these types cannot tell apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import External, Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import length, number
from trainwreck.code.rehearsal.questions.roles import users
from trainwreck.code.rehearsal.questions.rounding import CASTS

EXACT = {"bfloat16": 256, "half": 2048, "float16": 2048}
"""Up to where a type holds each whole number: 2 to the number of its digits (8 and 11)."""
MARGIN = 1.25
"""How far the numbers must go beyond that: a few at the end alone make no fault that is sure."""
AWAY = frozenset(["detach", "detach_", "to", "float", "type", "double", "type_as", "contiguous", "clone", "buffer"])
MOVED = AWAY | frozenset(
    """view reshape unsqueeze squeeze getitem expand expand_as repeat repeat_interleave t T transpose permute flatten
    mul div multiply outer einsum matmul mm cat stack neg data""".split()
)
"""What leaves a number what it is, or multiplies it."""
ANGLES = frozenset(["sin", "cos", "polar"])
ORDERS = frozenset(["lt", "le", "gt", "ge", "eq", "ne"])
LOOKS_UP = frozenset(["embedding", "long", "int", "one_hot"])
SUMS = frozenset(["add", "add_", "iadd"])
STARTS = frozenset(["zeros", "zeros_like", "new_zeros", "tensor", "full"])
TURNS = 600
"""Additions of about equal size after which a sum in bfloat16 has stood still: beyond 256 of them each is less than
half its last digit."""
STEPS = 8


def positions_in_half(run: Rehearsing) -> Iterator[Answer]:
    """Whole numbers of a range that goes beyond what their type holds become angles, indices or an order."""
    feeding: set[int] | None = None
    for node in run.nodes:
        kind = half(node)
        counted = _counted(node) if kind else None
        if counted is None or node.place is None:
            continue
        highest, step = _end(run, counted)
        if highest <= EXACT[kind] * step * MARGIN:
            continue
        used = _used(run, node)
        if feeding is None:
            feeding = {id(n) for e in run.tape if e.name == "backward" for n in ancestors(e.subject)}
        if used is None or id(used) not in feeding:
            continue
        text = f"numbers up to {highest:g} as {kind}: from {EXACT[kind] * step:g} on neighbours are the same number"
        yield Answer(node.place, text, (used.place,) if used.place is not None else ())
        return


def half(node: Node) -> str:
    """The short type that is given where a value is made or cast; empty where none is."""
    if node.op in ("bfloat16", "half") and not node.full:
        return node.op
    if node.op not in CASTS | STARTS and node.op not in ("arange", "as_tensor", "full", "ones", "linspace"):
        return ""
    for value in (node.options.get("dtype"), *node.inputs[1:]):
        if isinstance(value, External) and value.name in EXACT:
            return value.name
    return ""


def _counted(node: Node) -> Node | None:
    """The range that a value is, moved at most."""
    at: Value = node
    for _ in range(STEPS):
        if not isinstance(at, Node):
            return None
        if at.op == "arange":
            return at
        if at is not node and half(at):
            return None  # told of that one
        at = at.inputs[0] if at.op in (*AWAY, "bfloat16", "half", "unsqueeze", "view", "getitem", "to") else None
    return None


def _end(run: Rehearsing, counted: Node) -> tuple[float, float]:
    """The last number of a range and its step; zero where it isn't known."""
    given = [v for v in counted.inputs[: len(counted.inputs) - len(counted.options)] if not isinstance(v, External)]
    size = counted.shape.dims[0] if counted.shape.dims and not counted.shape.open else None
    if len(given) < 2:
        count = float(size) if size is not None else number(run, (*given, None)[0])
        return (count - 1, 1) if count is not None else (0, 1)
    found = [number(run, v) for v in given]
    known = [n for n in found if n is not None]
    if len(known) < len(found) or len(known) < 2 or any(n != int(n) for n in known):
        return 0, 1
    step = abs(known[2]) if len(known) > 2 else 1
    return max(abs(known[0]), abs(known[1])) - 1, step or 1


def _used(run: Rehearsing, node: Node) -> Node | None:
    """Where the numbers become angles, are compared with each other, or are looked up."""
    level = [node]
    for _ in range(STEPS):
        level = [u for one in level for u in users(run).get(id(one), ())][:60]
        for user in level:
            if user.op in ANGLES or user.op in LOOKS_UP:
                return user
            if user.op in ORDERS and all(isinstance(i, Node) and any(a is node for a in ancestors(i))
                                         for i in user.inputs[:2]):  # fmt: skip
                return user
        level = [u for u in level if u.op in MOVED and not _scaled_down(u)]
    return None


def _scaled_down(node: Node) -> bool:
    """True for shares of the whole (``arange(n) / n``): neighbours are alike, and nothing tells them apart by much."""
    return (
        node.op == "div"
        and len(node.inputs) > 1
        and not (isinstance(node.inputs[1], Node) and node.inputs[1].shape.dims)
    )


def summed_in_half(run: Rehearsing) -> Iterator[Answer]:
    """A sum that starts as a zero in bfloat16 and is added to in each of very many turns."""
    for node in run.nodes:
        if node.op not in SUMS or not node.turns or node.place is None or len(node.inputs) < 2 or node.grad:
            continue
        start = _start(node.inputs[0])
        if start is None or half(start) != "bfloat16" or len(start.turns) >= len(node.turns) or start.place is None:
            continue
        inner = node.turns[len(start.turns) :]
        turns = [length(run, t.over) for t in inner if isinstance(t.node, ast.For | ast.AsyncFor)]
        if len(turns) < len(inner) or None in turns:
            continue
        total = 1.0
        for count in turns:
            total *= count or 0
        if total >= TURNS:
            text = f"this sum is kept in bfloat16 over {total:g} additions: it stands still after a few hundred"
            yield Answer(start.place, text, (node.place,))
            return


def _start(value: Value) -> Node | None:
    """The zero that a running sum began with."""
    for _ in range(STEPS):
        if not isinstance(value, Node):
            return None
        if value.op in STARTS:
            zero = value.op in ("zeros", "zeros_like", "new_zeros") or value.inputs[:1] in ((0,), (0.0,))
            return value if zero else None
        if value.op == "either":
            starts = [s for i in value.inputs if (s := _start(i)) is not None]
            return starts[0] if starts else None
        value = value.inputs[0] if value.op in SUMS and value.inputs else None
    return None


__all__ = ["positions_in_half", "summed_in_half"]
