"""Which values are what the training minimises, worked out anew for other data?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.holding import is_optimizer

MINIMISED = "?minimised"
"""Attribute of a value that is computed by the very line whose result the training minimises."""


def mark_objectives(run: Rehearsing) -> None:
    """Notes which values are the objective itself, worked out anew (for other data): the less of it the better.

    Not where several objectives are minimised (an opponent's is no measure), or an optimizer maximises."""
    if "objectives marked" in run.memo:
        return
    run.memo["objectives marked"] = True
    optimizers = [o for o in run.objects if is_optimizer(o)]
    if len(optimizers) != 1 or optimizers[0].get("maximize") not in (None, False):
        return
    events = [e for e in run.tape if e.name == "backward" and e.place is not None]
    if len({id(e.place[0]) for e in events if e.place is not None}) != 1:
        return
    made = {(id(n.place[0]), n.op) for e in events for n in _unscaled(e.subject) if n.place is not None and n.grad}
    for node in run.nodes:
        if node.place is not None and (id(node.place[0]), node.op) in made:
            node.attributes[MINIMISED] = True


def _unscaled(value: Value) -> Iterator[Node]:
    """The value, and what it is but for a number above zero that it is multiplied with."""
    for _ in range(6):
        if not isinstance(value, Node) or value.op == "either":
            return
        yield value
        first, second = (*value.inputs, None, None)[:2]
        if value.op not in ("mul", "div") or not isinstance(second, int | float) or second <= 0:
            return
        value = first


__all__ = ["MINIMISED", "mark_objectives"]
