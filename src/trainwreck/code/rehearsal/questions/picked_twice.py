"""Tokens that are picked in an order, and picked in that order again where they were to be put back."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.order import CASTS, PICKS, WRITES
from trainwreck.code.rehearsal.questions.roles import trained

SPREADS = CASTS | {"unsqueeze", "expand", "expand_as", "repeat", "repeat_interleave", "getitem", "long", "either"}
"""What an order goes through to be an index: cut, and repeated for each feature."""
DEEP = 12
SUMMARIES = frozenset(["mean", "std", "var", "sum", "median", "quantile", "amax", "amin", "max", "min"])
MADE = frozenset(["argsort", "randperm", "permutation"])


def picked_twice(run: Rehearsing) -> Iterator[Answer]:
    """What a network made of elements in some order is picked by that very order: the inverse (its ``argsort``) puts
    them back."""
    told: set[int] = set()
    for node in trained(run):
        order = _order(node)
        if order is None or node.place is None or id(node.place[0]) in told or not node.grad:
            continue
        first = _picked_before(node, order)
        if first is not None and first.place is not None and first.place[0] is not node.place[0]:
            told.add(id(node.place[0]))
            text = "these were picked in this order before, and are picked in it again: its inverse puts them back"
            yield Answer(node.place, text, tuple(p for p in (first.place, order.place) if p is not None))


def _order(node: Node) -> Node | None:
    """The permutation that a value is picked by."""
    if node.op not in PICKS or len(node.inputs) < 2:
        return None
    given: list[Value] = [*node.inputs[1:], node.options.get("index")]
    for index in (p for item in given for p in parts(item)):
        inner = index
        for _ in range(DEEP):
            if inner.op in MADE:
                return inner
            # of ``labels[order]`` it is the labels that are picked by: what is looked up, not by which numbers
            first = next(parts(inner.inputs[:1]), None) if inner.op in SPREADS else None
            if first is None:
                break
            inner = first
    return None


def _picked_before(node: Node, order: Node) -> Node | None:
    """The pick by the same order that a network came after, where nothing put its elements back since."""
    queue = [(n, False) for n in parts(node.inputs[0])]
    seen: set[tuple[int, bool]] = set()
    while queue:
        at, learned = queue.pop(0)
        if (id(at), learned) in seen or at.op == "param":
            continue
        seen.add((id(at), learned))
        mine = _order(at)
        if mine is order:
            if learned:
                return at
            continue
        if _statistic(at):
            continue  # it is the same in whatever order they are
        if at.op in WRITES or (mine is not None and any(n is order for n in ancestors(mine.inputs))):
            continue  # put back by the inverse, or written to where they belong
        layer = learned or _layer(at)
        given = at.inputs[:1] if at.op in PICKS else at.inputs
        queue += [(n, layer) for i in given for n in parts(i)]
    return None


def _statistic(node: Node) -> bool:
    """True for a mean or spread over the elements, or over all axes."""
    rest = [i for i in node.inputs[1:] if isinstance(i, int | tuple) and not isinstance(i, bool)]
    along = next((node.options[k] for k in ("dim", "axis") if k in node.options), rest[0] if rest else None)
    return node.op in SUMMARIES and (along is None or along == 0 or (isinstance(along, tuple) and 0 in along))


def _layer(node: Node) -> bool:
    weighs = node.op not in ("add", "mul", "sub", "div")
    return weighs and any(n.op == "param" for i in node.inputs for n in parts(i))


__all__ = ["picked_twice"]
