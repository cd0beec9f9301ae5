"""Places of a target that are overwritten because nothing is known there, and a loss that counts only these."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.kept_apart import only_ignored
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards

FILLS = frozenset(["masked_fill", "masked_fill_", "where"])
PASSES = STRUCTURE | {"float", "double", "int", "long", "to", "type_as", "bool"}


def only_the_filled(run: Rehearsing) -> Iterator[Answer]:
    """``target.masked_fill(target == K, 0)`` beside a weight of ``(target == K)``: the loss is of what was put in."""
    if next(iter(only_ignored(run)), None) is not None:
        return  # told by another rule
    for event in backwards(run):
        found = list(ancestors(event.subject))
        filled = {k: n for n in found if n.op in FILLS and not n.grad and (k := _overwritten(n)) is not None}
        weights = (
            [(n, w) for n in found if n.op == "mul" and n.grad for w in n.inputs[:2] if _is_data(w)] if filled else []
        )
        marked = [(n, m) for n, w in weights if (m := _mark(w)) is not None]
        for _, mark in marked:
            other = any(m.op == "ne" and m.inputs[1:] == mark.inputs[1:] for _, m in marked)
            if mark.op == "eq" and _key(mark) in filled and not other and mark.place is not None:
                text = f"only the places of {mark.inputs[1]!r} count here, which the target has been overwritten at"
                where = filled[_key(mark)].place
                yield Answer(mark.place, text, tuple(p for p in (where, event.place) if p is not None))
                return


def _is_data(value: Value) -> bool:
    return isinstance(value, Node) and not value.grad


def _mark(value: Value) -> Node | None:
    """The comparison that a weight of zeros and ones is."""
    for _ in range(6):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in ("eq", "ne"):
            return value if len(value.inputs) > 1 and isinstance(value.inputs[1], int) else None
        if value.op not in PASSES:
            return None
        value = value.inputs[0]
    return None


def _key(mark: Node) -> tuple[object, ...]:
    return key_of(mark.inputs[0]), mark.inputs[1]


def _overwritten(node: Node) -> tuple[object, ...] | None:
    """At which number a target is overwritten by another one."""
    test = node.inputs[0] if node.op == "where" else node.inputs[1] if len(node.inputs) > 1 else None
    mark = _mark(test)
    base = node.inputs[2] if node.op == "where" and len(node.inputs) > 2 else node.inputs[0]
    if mark is None or mark.op != "eq" or not isinstance(base, Node) or key_of(base) != key_of(mark.inputs[0]):
        return None
    return _key(mark)


__all__ = ["only_the_filled"]
