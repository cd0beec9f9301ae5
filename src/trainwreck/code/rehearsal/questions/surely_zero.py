"""Zeros that surely come: columns that are constant, rows of few relus, counts of what did not occur."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import bounds, core, trained, users

SPREADS = frozenset(["std", "var", "nanstd"])
FILLED = frozenset(["ones", "zeros", "full", "ones_like", "zeros_like", "full_like"])
NARROW = 12
"""A row of so few relus is all zero once in 4,096 rows, half of the outputs being below zero: many times an epoch."""
LENGTHS = frozenset(["norm", "vector_norm"])
COUNTS = frozenset(["randint", "integers"])


def constant_column(run: Rehearsing) -> Iterator[Answer]:
    """A table is divided by the deviations of its columns, one of which was filled with one number."""
    told: set[int] = set()
    for node in run.nodes:
        below = node.inputs[1] if node.op == "div" and len(node.inputs) > 1 else None
        for spread in core(below):
            if spread.op not in SPREADS or not _by_columns(spread) or node.place is None:
                continue
            filled = next((f for c in parts(spread.inputs[0]) if (f := _constant(c)) is not None), None)
            if filled is not None and id(node.place[0]) not in told:
                told.add(id(node.place[0]))
                text = "one of these columns holds one number only: its deviation is 0, and 0 / 0 is NaN"
                yield Answer(node.place, text, (filled.place,) if filled.place is not None else ())


def _by_columns(spread: Node) -> bool:
    rest = spread.inputs[1 : len(spread.inputs) - len(spread.options)]
    along = next((spread.options[k] for k in ("dim", "axis") if k in spread.options), rest[0] if rest else None)
    return along == 0 and not isinstance(along, bool)


def _constant(table: Node) -> Node | None:
    """Where a whole column was filled with one number, the last time that it was written."""
    at: Value = table
    for _ in range(8):
        if not isinstance(at, Node):
            return None
        if at.op == "setitem" and len(at.inputs) > 2:
            index, value = at.inputs[2], at.inputs[1]
            rows = index[0] if isinstance(index, tuple) and len(index) == 2 else None
            whole = isinstance(rows, Obj) and rows.kind == "builtins.slice" and set(rows.args[:2]) <= {None}
            if whole and isinstance(index, tuple) and isinstance(index[1], int):
                return at if isinstance(value, int | float) else None
            return None
        if at.op in ("cat", "concatenate", "hstack", "column_stack") and at.inputs:
            first = at.inputs[0]
            items = list(first) if isinstance(first, tuple) else list(first.items) if isinstance(first, Items) else []
            wide = at.op in ("hstack", "column_stack") or 1 in (*at.inputs[1:2], *at.options.values())
            return next((i for i in items if isinstance(i, Node) and i.op in FILLED), None) if wide else None
        if at.op not in ("float", "double", "to", "astype", "clone", "copy", "numpy", "from_numpy", "tensor"):
            return None
        at = at.inputs[0] if at.inputs else None
    return None


def short_relu_rows(run: Rehearsing) -> Iterator[Answer]:
    """Rows of a few relus that are divided by their length, which is zero where all of them are off."""
    for node in trained(run):
        if node.op != "div" or len(node.inputs) < 2 or node.place is None or not isinstance(node.inputs[0], Node):
            continue
        rows = [n for n in core(node.inputs[0]) if n.op == "relu"]
        for length in core(node.inputs[1]):
            inner = core(length.inputs[0]) if length.op in LENGTHS and length.inputs else []
            dims = rows[0].shape.dims if rows else ()
            width = dims[-1] if dims and not rows[0].shape.open else None
            same = bool(rows) and {id(n) for n in inner} == {id(n) for n in rows}
            if same and isinstance(width, int) and width <= NARROW and node.grad:
                text = (
                    f"rows of {width} relus are zero as a whole now and then, and so is the length they are divided by"
                )
                yield Answer(node.place, text, (length.place,) if length.place is not None else ())
                break


def log_of_counts(run: Rehearsing) -> Iterator[Answer]:
    """``p * log(p)`` of counts of which some are zero: 0 times minus infinity is NaN."""
    for log in run.nodes:
        if log.op not in ("log", "log2", "log10") or log.grad or log.place is None or not log.inputs:
            continue
        share = core(log.inputs[0])
        if not share or not all(_may_be_none(n) for n in share):
            continue
        for user in users(run).get(id(log), ()):
            other = [n for i in user.inputs[:2] if i is not log for n in core(i)] if user.op == "mul" else []
            if other and {id(n) for n in other} <= {id(n) for n in share}:
                text = "a share of what did not occur is 0 here, and 0 times the logarithm of 0 is NaN"
                yield Answer(log.place, text, (user.place,) if user.place is not None else ())
                break


def _may_be_none(share: Node) -> bool:
    """True for counts that begin at zero, divided by their sum."""
    above = core(share.inputs[0]) if share.op == "div" and share.inputs else [share]
    return bool(above) and all(n.op in COUNTS and bounds(n).low == 0 and bounds(n).high > 0 for n in above)


NEAR = 60


def by_zero(run: Rehearsing) -> Iterator[Answer]:
    """An array is divided by a number that is worked out to zero: ``m / (1 - beta ** t)`` with a ``t`` that stays 0.

    Not where a later turn may have another number: the same division is then there with an unknown one."""
    open_ended = {id(n.place[0]) for n in run.nodes if n.op == "div" and n.place is not None and _other(n)}
    for node in run.nodes:
        if node.op != "div" or len(node.inputs) < 2 or node.place is None or id(node.place[0]) in open_ended:
            continue
        above, below = node.inputs[:2]
        learned = isinstance(above, Node) and any(n.op in ("grad", "param") for n in ancestors(above))
        if learned and isinstance(below, int | float) and not isinstance(below, bool) and below == 0:
            if any(n.op in ("softmax", "log_softmax") and any(m is node for m in near(n, NEAR)) for n in run.nodes):
                continue  # a temperature: told by itself
            yield Answer(node.place, "what this is divided by is zero in each turn")
            return


def _other(node: Node) -> bool:
    """True for a division by anything but a zero."""
    below = node.inputs[1] if len(node.inputs) > 1 else None
    return not isinstance(below, int | float) or below != 0
