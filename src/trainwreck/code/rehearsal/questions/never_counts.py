"""Shares of a run that are worked out by whole division: ``step // steps`` is zero from the first step to the last."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.roles import backwards

COMPARES = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "getitem"])


def weight_stays_zero(run: Rehearsing) -> Iterator[Answer]:
    """What the objective is computed with follows a count that is divided away: it is what it is at the first step."""
    for event in backwards(run):
        behind = ancestors(event.subject, through=lambda n: n.op not in COMPARES)
        whole = next((n for n in behind if _divided_away(run, n)), None)
        if whole is not None and whole.place is not None:
            text = "this is a whole division by the number of steps: zero all along, and what follows it never moves"
            yield Answer(whole.place, text, (event.place,) if event.place is not None else ())
            return


def _divided_away(run: Rehearsing, node: Node) -> bool:
    """True for ``k // n`` of a count that stays below ``n``."""
    if node.op not in ("floor_divide", "floordiv") or len(node.inputs) < 2:
        return False
    count, by = node.inputs[:2]
    last, size = _end(run, count), number(run, by)
    return last is not None and size is not None and 1 < last <= size


def _end(run: Rehearsing, value: Value) -> float | None:
    """Where the count of ``range(n)`` ends."""
    if not isinstance(value, Node) or value.op != "counter" or not value.inputs:
        return None
    ends = value.inputs
    return number(run, ends[0] if len(ends) == 1 else ends[1])
