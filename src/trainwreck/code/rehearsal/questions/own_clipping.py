"""Gradients that a program scales itself by their norm: are the long ones made shorter?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.own_updates import LENGTHS, changes
from trainwreck.code.rehearsal.trial.bench import Bench, Unknown

LONG = 1e6
"""A norm that any clipping cuts: published limits are 0.01 to 100."""
KEPT = 0.9
"""So much of a gradient of that length is left where nothing is cut."""


def left_long(run: Rehearsing) -> Iterator[Answer]:
    """Worked out with a gradient of a huge norm: the factor that hangs on the norm leaves it as it is, or longer."""
    for change in changes(run):
        for event, factor in _factors(change.events):
            norm = next((n for n in ancestors(factor) if n.op in LENGTHS and _of_gradients(n)), None)
            left = _left(factor, norm) if norm is not None and factor.op != "param" else None
            if left is None or left < KEPT or factor.place is None:
                continue
            text = f"of a gradient with a norm of a million {left:.3g} times as much is left: nothing is clipped"
            yield Answer(factor.place, text, (event.place,) if event.place is not None else ())
            return


def _factors(events: list[Event]) -> Iterator[tuple[Event, Node]]:
    """What gradients are multiplied by in place."""
    for event in events:
        given = event.args[0] if event.name == "mul_" and event.args else None
        if isinstance(given, Node):
            yield event, given


def _of_gradients(node: Node) -> bool:
    return any(n.op == "grad" for n in ancestors(node))


def _left(factor: Value, norm: Node) -> float | None:
    """The factor for a gradient of this norm."""
    import numpy as np

    try:
        found = Bench({id(norm): np.asarray(LONG)}).work(factor)
    except Unknown:
        return None
    return float(found.reshape(-1)[0]) if found.size == 1 else None


__all__ = ["left_long"]
