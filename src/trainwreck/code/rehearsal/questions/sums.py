"""Formulas worked out as sums of chosen symbols: what a sampler's step makes of data, noise and a network's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainwreck.code.rehearsal.domain import Node, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions.denoising import NOISE
from trainwreck.code.rehearsal.questions.levels import UNARY, Unknown, row
from trainwreck.code.rehearsal.questions.roles import STRUCTURE

ONE = 0
"""The key of a plain number."""
TINY = 1e-6
PASSES = STRUCTURE | frozenset(["clamp", "clip", "long", "int", "float", "buffer", "nan_to_num", "part"])


class Crooked(Unknown):
    """A formula that divides by a symbol, or draws the root of a negative number: known, and surely no sum."""


Sum = dict[int, float]
"""Factors of symbols and of new noise (by its ``id``)."""


def work_out(value: Value, known: Mapping[int, Sum], depth: int = 0) -> Sum:
    """``value`` as a sum of the symbols in ``known`` and of new noise (by its ``id``). Raises ``Unknown``."""
    if isinstance(value, bool) or depth > 80:
        raise Unknown
    if isinstance(value, int | float):
        return {ONE: float(value)}
    if not isinstance(value, Node):
        raise Unknown
    if id(value) in known:
        return known[id(value)]
    op, inputs = value.op, value.inputs
    if op in NOISE:
        return {id(value): 1.0}

    def of(number: int) -> Sum:
        return work_out(inputs[number], known, depth + 1)

    if op in ("add", "sub") and len(inputs) >= 2:
        factor = value.options.get("alpha", 1)
        if not isinstance(factor, int | float):
            raise Unknown
        return _plus(of(0), of(1), factor if op == "add" else -factor)
    if op in ("mul", "div") and len(inputs) >= 2:
        return _times(of(0), of(1), op == "div")
    if op == "neg":
        return _times(of(0), {ONE: -1.0})
    if op == "lerp" and len(inputs) > 2:
        return _plus(of(0), _times(_plus(of(1), of(0), -1), of(2)), 1)
    if op in ("zeros_like", "zeros"):
        return {ONE: 0.0}
    if op in ("full", "full_like") and len(inputs) > 1:
        return of(1)
    if op in ("either", "where"):
        return _noisiest(candidates(value) if op == "either" else inputs[1:3], known, depth)
    picks = op in ("getitem", "gather", "index_select", "take") and len(inputs) > 1
    if picks and (taken := _table(value, known, depth)) is not None:
        return taken
    if op in UNARY or op in ("pow", "max", "min", "maximum", "minimum", "floor_divide"):
        return {ONE: _plain(op, [number_in(of(n)) for n in range(min(len(inputs), 2)) if not _axis(inputs, n)])}
    if op in ("tensor", "as_tensor", "full", "ones", "ones_like", "array") or op in PASSES:
        first = next(iter(parts(inputs[:1])), inputs[0] if inputs else None)
        return {ONE: 1.0} if op in ("ones", "ones_like") else work_out(first, known, depth + 1)
    whole = row(value)
    if isinstance(whole, float):
        return {ONE: whole}
    raise Unknown


def _axis(inputs: tuple[Value, ...], number: int) -> bool:
    return number > 0 and not isinstance(inputs[number], Node | int | float)


def _plus(one: Sum, other: Sum, factor: float) -> Sum:
    return {k: one.get(k, 0.0) + factor * other.get(k, 0.0) for k in one.keys() | other.keys()}


def _times(one: Sum, other: Sum, divide: bool = False) -> Sum:
    if divide:
        if any(abs(v) > TINY for k, v in other.items() if k != ONE):
            raise Crooked
        divisor = number_in(other)
        return {k: v / divisor for k, v in one.items()}
    for number, rest in ((one, other), (other, one)):
        if set(number) <= {ONE}:
            return {k: v * number.get(ONE, 0.0) for k, v in rest.items()}
    raise Unknown


def number_in(value: Sum) -> float:
    if set(value) - {ONE}:
        raise Unknown
    return value.get(ONE, 0.0)


def _plain(op: str, given: list[float]) -> float:
    if op in ("sqrt", "rsqrt") and given and given[0] < -TINY:
        raise Crooked
    try:
        if op in UNARY:
            return UNARY[op](given[0])
        if op == "pow":
            return float(given[0] ** given[1])
        if op == "floor_divide":
            return given[0] // given[1]
        return max(given) if op.startswith("max") else min(given)
    except (ArithmeticError, ValueError, IndexError, TypeError):
        raise Unknown from None


def _noisiest(choices: Sequence[Value], known: Mapping[int, Sum], depth: int) -> Sum:
    """Of branches the one with the most new noise, of numbers the one that depends on the time: the others are for
    the last step."""
    found: list[Sum] = []
    timed = [c for c in choices if isinstance(c, Node) and any(id(n) in known for n in ancestors(c))]
    for choice in timed or choices:
        try:
            found.append(work_out(choice, known, depth + 1))
        except Unknown:
            if isinstance(choice, Node) and any(id(n) in known for n in ancestors(choice)):
                raise
    plain = all(set(f) <= {ONE} for f in found)
    if not found or (plain and len({f.get(ONE) for f in found}) > 1):
        raise Unknown
    return max(found, key=lambda s: sum(abs(v) > TINY for v in s.values()))


def _table(node: Node, known: Mapping[int, Sum], depth: int) -> Sum | None:
    """An element of a table of numbers; None where something else is selected from."""
    numbers = row(node.inputs[0])
    picks = node.inputs[1:]
    if node.op in ("gather", "index_select") and len(picks) > 1:
        picks = picks[1:]
    if not isinstance(numbers, list):
        return None
    pick = picks[0]
    if isinstance(pick, tuple):
        rest = [p for p in pick if isinstance(p, Node | int)]
        pick = rest[0] if len(rest) == 1 else None
    if pick is None:
        raise Unknown
    place = number_in(work_out(pick, known, depth + 1))
    if place != int(place) or not -len(numbers) <= place < len(numbers):
        raise Unknown
    return {ONE: numbers[int(place)]}
