"""Low-rank updates that are written into the weights: as strong as they were in training?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import Pair, pairs
from trainwreck.code.rehearsal.questions.strength import factors_of, within
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

SLIGHT = 1e-6


class Added(Row):
    """An update that is added to something: how often, where, and whether to weights (else to a layer's output)."""

    pair: Pair
    total: float
    place: Place
    merged: bool


def merged_otherwise(run: Rehearsing) -> Iterator[Answer]:
    """The update counts so often in the forward of the training, and another time in the weights that it becomes."""
    added = list(_added(run))
    for one in added:
        if not one.merged:
            continue
        same = [o for o in added if o.pair.outer is one.pair.outer and o.pair.inner is one.pair.inner]
        forward = {o.total: o for o in same if not o.merged}
        if len(forward) != 1:
            continue
        total, other = next(iter(forward.items()))
        taken_off = one.total == -total and any(o.merged and o.total == total for o in same)
        several = len({o.total for o in same if o.merged and o.total > 0}) > 1
        if taken_off or several or _on_demand(one.place) or abs(one.total - total) <= SLIGHT * max(abs(total), 1.0):
            continue
        place = other.place if total == 1.0 and one.total > 0 else one.place
        text = (
            f"the low-rank update counts {total:g} times in the forward and {one.total:g} times in the merged weights"
        )
        yield Answer(place, text, (one.place, other.place))
        return


def _on_demand(place: Place) -> bool:
    """True where a function merges with a strength of its caller's choice, which is 1 if he says nothing."""
    scope = place[1].node
    if not isinstance(scope, ast.FunctionDef):
        return False
    every = [*scope.args.posonlyargs, *scope.args.args]
    pairs_ = [*zip(every[len(every) - len(scope.args.defaults) :], scope.args.defaults, strict=True)]
    pairs_ += [(a, d) for a, d in zip(scope.args.kwonlyargs, scope.args.kw_defaults, strict=True) if d is not None]
    chosen = {a.arg for a, d in pairs_ if isinstance(d, ast.Constant) and d.value in (1, 1.0) and d.value is not True}
    return any(isinstance(n, ast.Name) and n.id in chosen for n in ast.walk(scope))


def _added(run: Rehearsing) -> Iterator[Added]:
    made = {id(p.node): p for p in pairs(run)}
    for node in run.nodes if made else ():
        if node.op not in ("add", "sub") or len(node.inputs) < 2 or node.place is None:
            continue
        for number, item in enumerate(node.inputs[:2]):
            found, at = factors_of(item, made.keys())
            pair = made.get(id(at)) if at is not None else None
            if pair is None:
                continue
            total = -1.0 if node.op == "sub" and number else 1.0
            alpha = number_of(node.options.get("alpha", 1.0))
            if alpha is None:
                continue
            total *= alpha if number else 1.0
            for value, _, _ in (*found, *within(pair)):
                total *= value
            yield Added(pair, total, node.place, _of_weights(pair))


def _of_weights(pair: Pair) -> bool:
    """True for a product of the two matrices alone."""
    return len(pair.node.inputs) > 1 and all(_matrix(i) for i in pair.node.inputs[:2])


def _matrix(value: object) -> bool:
    for _ in range(6):
        if not isinstance(value, Node):
            return False
        if value.op == "param":
            return True
        value = next((i for i in value.inputs[:2] if isinstance(i, Node)), None)
    return False


__all__ = ["merged_otherwise"]
