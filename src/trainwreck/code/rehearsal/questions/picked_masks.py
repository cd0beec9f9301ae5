"""Masks of what was hidden, written for shuffled elements: are they put back the way the elements are?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained

PICKS = frozenset(["gather", "take_along_dim"])
CONSTANTS = frozenset(["ones", "zeros", "full"])
DEEP = 8


def mask_by_the_order(run: Rehearsing) -> Iterator[Answer]:
    """A mask that was written for the shuffled elements is picked by the order that shuffled them, and the elements
    themselves by its inverse: it hides others than were hidden."""
    picks = [n for n in run.nodes if n.op in PICKS and len(n.inputs) > 1]
    restored = {id(order) for n in picks if n.grad and (order := _inverted(_index(n))) is not None}
    for node in picks:
        index = _index(node)
        if (
            node.grad
            or index is None
            or id(index) not in restored
            or node.place is None
            or not _written(node.inputs[0])
        ):
            continue
        if any(node in u.inputs for u in trained(run)):
            text = "the elements are put back by the inverse of this order, and the mask is picked by the order itself"
            yield Answer(node.place, text, (index.place,) if index.place is not None else ())
            return


def _index(node: Node) -> Node | None:
    """The permutation that is picked by."""
    rest = [i for i in (*node.inputs[1:], *node.options.values()) if isinstance(i, Node)]
    at: Value = rest[0] if rest else None
    for _ in range(DEEP):
        if not isinstance(at, Node):
            return None
        if at.op == "argsort":
            return at
        at = next(parts(at.inputs[:1]), None) if at.op in STRUCTURE | {"expand"} else None
    return None


def _inverted(index: Node | None) -> Node | None:
    """Of ``order.argsort()``: the order."""
    of = index.inputs[0] if index is not None and index.inputs else None
    return of if isinstance(of, Node) and of.op == "argsort" else None


def _written(value: Value) -> bool:
    """True for constants of which a part was set to another one."""
    changed = False
    for _ in range(DEEP):
        if not isinstance(value, Node) or not value.inputs:
            return False
        if value.op in CONSTANTS:
            return changed
        changed = changed or (value.op == "setitem" and isinstance(value.inputs[1], int | float))
        value = value.inputs[0] if value.op == "setitem" else None
    return False
