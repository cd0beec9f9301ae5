"""How strong a low-rank update is: the product of all numbers between its two matrices and the sum with the layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.bounds import origin
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import LINEAR, PASSES, Pair, pairs
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.code.values import number

EXCESSIVE = 64.0
"""A factor in front of the update. Papers and libraries use 0.25 to 4 (arXiv:2106.09685)."""
TIMES_RANK = 8.0
"""The same where the number was multiplied by the rank that it is to be divided by."""
Factor = tuple[float, Node, int]
"""A number, the product that it stands in, and as which of its inputs."""


def too_strong(run: Rehearsing) -> Iterator[Answer]:
    """The update is multiplied by a large number before it is added."""
    made = {id(p.node): p for p in pairs(run)}
    for node in run.nodes:
        if node.op != "add" or len(node.inputs) < 2 or node.place is None:
            continue
        for item in node.inputs[:2]:
            factors, at = factors_of(item, made.keys())
            pair = made.get(id(at)) if at is not None else None
            if pair is None:
                continue
            factors += within(pair)
            total = 1.0
            for value, _, _ in factors:
                total *= value
            largest = max(factors, key=lambda f: abs(f[0]), default=None)
            place = _written(run, largest, pair) if largest is not None else None
            ranked = next((n.place for v, n, _ in factors if n.op == "mul" and v in _ranks(pair)), None)
            by_rank = (ranked is not None and len(factors) > 1) or (place is not None and _by_rank(run, place, pair))
            if ranked is not None and len(factors) > 1:
                place = ranked
            if place is None:
                continue
            if abs(total) >= EXCESSIVE or (abs(total) >= TIMES_RANK and by_rank):
                text = f"the low-rank update is multiplied by {total:g} before it is added"
                yield Answer(place, text, (node.place,))
                return


def factors_of(value: Value, stop: object) -> tuple[list[Factor], Node | None]:
    """The numbers in front of a value, and what they stand before."""
    found: list[Factor] = []
    assert hasattr(stop, "__contains__")
    for _ in range(30):
        if not isinstance(value, Node):
            return found, None
        if id(value) in stop:
            return found, value
        if value.op in ("mul", "div") and len(value.inputs) > 1:
            known = number_of(value.inputs[1])
            place = 1
            if known is None and value.op == "mul":
                known, place = number_of(value.inputs[0]), 0
            if known:
                found.append((1 / known if value.op == "div" else known, value, place))
                value = value.inputs[1 - place]
                continue
        if value.op not in PASSES or not value.inputs:
            return found, value
        value = value.inputs[0]
    return found, None


def within(pair: Pair) -> list[Factor]:
    """The numbers between the two matrices, and those in front of one of them."""
    found: list[Factor] = []
    for item in pair.node.inputs:
        inner, at = factors_of(item, ())
        if at is not None and (at.op in LINEAR or at.op == "param"):
            found += inner
    return found


def _written(run: Rehearsing, factor: Factor, pair: Pair) -> Place | None:
    """Where the number is worked out or written."""
    _, node, side = factor
    value = node.inputs[side]
    if isinstance(value, Node) and value.place is not None:
        return value.place
    if node.place is None or not isinstance(node.place[0], ast.BinOp):
        return node.place
    at, scope = node.place
    assert isinstance(at, ast.BinOp)
    expression: ast.expr = at.right if side else at.left
    found = origin(run.project, expression, scope)
    if found[0] is expression and isinstance(expression, ast.Attribute) and scope.owner is not None:
        method = scope.owner.method(expression.attr)
        given = next((v for v in method.returns if v is not None), None) if method is not None else None
        if method is not None and given is not None:
            found = (given, method)
    if isinstance(found[0], ast.BinOp) and isinstance(found[0].op, ast.Div):
        above = origin(run.project, found[0].left, found[1])
        if isinstance(above[0], ast.Constant):
            return above
        return _asked_for(run, found[0].left, pair) or found
    return found


def _asked_for(run: Rehearsing, name: ast.expr, pair: Pair) -> Place | None:
    """Of a parameter of the adapter's constructor: what was given for it where this adapter was made."""
    if not isinstance(name, ast.Name):
        return None
    for owner in run.objects:
        if owner.cls is None or owner.place is None or pair.outer not in _held(owner):
            continue
        call, scope = owner.place
        keywords = call.keywords if isinstance(call, ast.Call) else []
        return next(((k.value, scope) for k in keywords if k.arg == name.id), None)
    return None


def _held(owner: Obj) -> list[Value]:
    """The parameters of an adapter, also those of its layers."""
    layers = [v for v in owner.attributes.values() if isinstance(v, Obj) and v.cls is None and v.own]
    return [*owner.attributes.values(), *(p for layer in layers for p in (layer.own or {}).values())]


def _by_rank(run: Rehearsing, place: Place, pair: Pair) -> bool:
    """True for a product with the rank: ``alpha * r``."""
    node, scope = place
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    return any(number(run.project, side, scope) in _ranks(pair) for side in (node.left, node.right))


def _ranks(pair: Pair) -> set[float]:
    """The size that both matrices have."""
    return {float(d) for d in _sizes(pair.inner) & _sizes(pair.outer) if d > 1}


def _sizes(matrix: Node) -> set[int]:
    owner = matrix.owner
    if owner is not None and owner.name == "Linear":
        sizes = (owner.get("in_features", 0), owner.get("out_features", 1))
        return {s for s in sizes if isinstance(s, int)}
    return {d for d in matrix.shape.dims if d is not None}
