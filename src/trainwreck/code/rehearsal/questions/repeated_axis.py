"""Sums and maxima over an axis along which one of two summands is only repeated: it takes no part in them.

``logsumexp(alpha[:, :, None] + transitions, dim=2)`` is ``alpha + logsumexp(transitions, ...)``: what was to be summed
over the states before leaves each of them as it is (the forward and Viterbi recursions of chains, path scores).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along

REDUCES = frozenset(["logsumexp", "max", "amax", "min"])


def takes_no_part(run: Rehearsing) -> Iterator[Answer]:
    """A recursion over the steps of a sequence whose states are never mixed."""
    told: set[int] = set()
    for node in run.nodes:
        inner = node.inputs[0] if node.op in REDUCES and node.inputs else None
        if not isinstance(inner, Node) or inner.op != "add" or node.place is None or id(node.place[0]) in told:
            continue
        at = along(node)
        count = len(inner.shape.dims)
        if not isinstance(at, int) or isinstance(at, bool) or inner.shape.open or count < 2 or not node.turns:
            continue
        for one, other in (inner.inputs[:2], inner.inputs[1::-1]):
            made = _new_axis(one, count)
            if made is None or made != at % count or not isinstance(other, Node):
                continue
            if not other.shape.open and other.shape.dims and _carried(one, node):
                told.add(id(node.place[0]))
                text = (
                    f"along axis {at} the state is only repeated: each one stays by itself, none is mixed with others"
                )
                yield Answer(node.place, text)
                break


def _new_axis(value: Value, count: int) -> int | None:
    """Which axis, counted from the left, ``unsqueeze`` or ``[:, None]`` put in."""
    if not isinstance(value, Node) or value.shape.open or not value.inputs or len(value.shape.dims) > count:
        return None
    before = count - len(value.shape.dims)
    rank = len(value.shape.dims)
    if value.op == "unsqueeze":
        at = value.options.get("dim", value.inputs[1] if len(value.inputs) > 1 else None)
        return at % rank + before if isinstance(at, int) else None
    if value.op == "getitem" and len(value.inputs) > 1 and isinstance(value.inputs[1], tuple):
        index = value.inputs[1]
        plain = all(i is None or (isinstance(i, Obj) and i.args[:2] == (None, None)) for i in index)
        return index.index(None) + before if plain and index.count(None) == 1 else None
    return None


def _carried(one: Value, node: Node) -> bool:
    """True where what was repeated is the state that an earlier turn left, or the first one."""
    base = one.inputs[0] if isinstance(one, Node) and one.inputs else None
    if not isinstance(base, Node):
        return False
    here = node.turns[-1]
    return here not in base.turns or any(n.place is not None and n.place == node.place for n in ancestors(base))


__all__ = ["takes_no_part"]
