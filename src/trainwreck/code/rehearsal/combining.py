"""Shapes of operators: how the sizes of two operands go together, and where they don't."""

from __future__ import annotations

from collections.abc import Sequence

from trainwreck.code.rehearsal.domain import Items, Node, Value, candidates
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.reshaping import literal
from trainwreck.code.shapes.domain import ANY, Clash, Shape, broadcast, uneven
from trainwreck.code.shapes.layers import Report

SCALAR = Shape(())
OPERATORS = frozenset(
    """add sub mul div pow mod floor_divide eq ne lt le gt ge and or xor true_divide subtract multiply divide
    logical_and logical_or logaddexp fmax fmin shift bitwise_and bitwise_or""".split()
)
ARITHMETIC = frozenset(
    "add sub mul div pow mod floor_divide eq ne lt le gt ge true_divide subtract multiply divide".split()
)
"""Operators that torch and numpy refuse for sizes that don't fit."""
COMPARED = frozenset("eq ne lt le gt ge".split())
CHOICES = frozenset(["argmax", "argmin", "max", "min"])
REDUCES = CHOICES | frozenset("mean sum norm std var logsumexp prod amax amin nanmean median".split())
ELEMENTWISE = frozenset("neg exp log sqrt square pow abs relu clamp clip float long detach add sub mul div".split())


def operand(value: Value) -> Shape:
    """The shape of a value as an operand: a number has no axes."""
    if isinstance(value, Node):
        return value.shape
    return SCALAR if isinstance(value, int | float) else literal(value) if isinstance(value, Items) else ANY


def together(values: Sequence[Value]) -> Shape:
    result = SCALAR
    for value in values:
        result, wrong = broadcast(result, operand(value))
        if wrong is not None:
            return ANY
    return result


def combined(node: Node, report: Report) -> Shape:
    """Of an operator; two tensors of which the sizes don't fit are reported."""
    sides = [operand(v) for v in node.inputs]
    tensors = len(sides) == 2 and all(isinstance(v, Node) for v in node.inputs)
    if tensors and node.op in ARITHMETIC and node.place is not None:
        _, wrong = broadcast(*sides)
        clash = _reduced(node) if wrong is not None else None
        if wrong is not None and clash is None and not _over_samples(node):
            clash = _unlike(node, sides, wrong)
        if clash is not None:
            report(clash)
    if node.op in COMPARED and all(_listed(v) for v in node.inputs):
        return SCALAR
    return together(node.inputs)


def _listed(value: Value) -> bool:
    """True for a tuple or list of Python: two of them are equal or not, as a whole."""
    return all(isinstance(v, tuple | Items) for v in candidates(value))


def _unlike(node: Node, sides: list[Shape], wrong: tuple[int, int]) -> Clash:
    assert node.place is not None
    kind = "divide" if uneven(*sides) else "sum"
    text = f"{sides[0]} and {sides[1]} can't be combined: {wrong[0]} against {wrong[1]}"
    return Clash(kind, node.place, text, tuple(side.by for side in sides if side.by is not None)[:1])


def _reduced(node: Node) -> Clash | None:
    """The reduction behind one of the two that runs along an axis with which they don't fit, and along another one
    would."""
    for side, other in (node.inputs[:2], node.inputs[1::-1]):
        made = _reduction(side)
        if made is None or not isinstance(other, Node) or made.place is None or not isinstance(made.inputs[0], Node):
            continue
        dims, axis = made.inputs[0].shape.dims, made.options.get("dim", made.options.get("axis"))
        axis = (*made.inputs, None, None)[2 if made.op == "norm" else 1] if axis is None else axis
        if not isinstance(axis, int) or made.inputs[0].shape.open or not -len(dims) <= axis < len(dims):
            continue
        others = [at for at in range(len(dims)) if at != axis % len(dims)]
        fits = [at for at in others if broadcast(Shape((*dims[:at], *dims[at + 1 :])), other.shape)[1] is None]
        if fits:
            text = f"axis {axis} of {made.inputs[0].shape} is reduced here, and what is left does not fit {other.shape}"
            kind = "axis-choice" if made.op in CHOICES else "axis"
            return Clash(kind, made.place, f"{text}: axis {fits[0]} would")
    return None


def _over_samples(node: Node) -> bool:
    """True where something was reduced along the first axis just before: that is asked for by itself."""
    found = [n for n in near(node, 16) if n.op in REDUCES or n.op in ("max", "min")]
    return any(0 in (n.options.get("dim"), n.options.get("axis"), *n.inputs[1:2]) for n in found)


def _reduction(value: Value) -> Node | None:
    """The reduction that a value is, or was computed from element by element."""
    for _ in range(6):
        if not isinstance(value, Node):
            return None
        if value.op in REDUCES:
            return value
        if value.op in ("max", "min") and len(value.inputs) - len(value.options) + ("dim" in value.options) > 1:
            return value
        if value.op not in ELEMENTWISE and not (value.op in ("part", "attribute") and value.inputs):
            return None
        value = next((i for i in value.inputs if isinstance(i, Node)), None)
    return None
