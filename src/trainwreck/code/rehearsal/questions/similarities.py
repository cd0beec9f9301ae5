"""Similarities in a loss: their scale before the softmax, and pairs that are masked out."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, bounds, trained
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.code.rehearsal.questions.views import has_length as _length

PRODUCTS = frozenset(["matmul", "mm", "bmm", "inner"])
HOT, COLD = 2.0, 0.004
"""Published temperatures lie between 0.01 (the clip of CLIP, arXiv:2103.00020) and 1 (arXiv:2002.05709, table 5)."""


def scaled(run: Rehearsing) -> Iterator[Answer]:
    """Similarities of normalised embeddings that reach the softmax with a factor far outside of what works."""
    for node in trained(run):
        if node.op not in ("cross_entropy", "log_softmax", "logsumexp") or not node.inputs:
            continue
        if node.op == "cross_entropy" and not _diagonal(node):
            continue
        factor, place, at = 1.0, None, node.inputs[0]
        for _ in range(20):
            if not isinstance(at, Node):
                break
            if at.op in ("mul", "div") and len(at.inputs) > 1:
                number, rest = _gain(at.inputs[1]), at.inputs[0]
                if number is None and at.op == "mul":
                    number, rest = _gain(at.inputs[0]), at.inputs[1]
                if not number:
                    break
                factor = factor / number if at.op == "div" else factor * number
                place, at = _given_at(at, rest) if place is None else place, rest
            elif at.op in STRUCTURE or at.op in ("masked_fill", "masked_fill_", "T", "t", "add", "sub"):
                at = at.inputs[0]
            elif at.op in JOINS:
                at = next(iter(parts(at.inputs[0])), None) if at.inputs else None
            else:
                break
        if isinstance(at, Node) and at.op in PRODUCTS and len(at.inputs) > 1:
            sides = [_side(i) for i in at.inputs[:2]]
            place = place or next((p for _, p, _ in sides if p is not None), None)
            factor *= sides[0][0] * sides[1][0]
            unit = all(isinstance(s, Node) and _unit(s) for _, _, s in sides)
        else:
            unit = isinstance(at, Node) and _cosine(at)
        if place is None and unit and isinstance(at, Node) and node.op == "cross_entropy":
            yield from _scale_left_out(run, at)
        if place is None or not unit:
            continue
        if factor <= 1 / HOT or factor >= 1 / COLD:
            text = f"similarities between -1 and 1 are multiplied by {factor:.3g}: the loss is "
            yield Answer(place, text + ("nearly flat" if factor < 1 else "a hard maximum"))
            return


def _scale_left_out(run: Rehearsing, product: Node) -> Iterator[Answer]:
    """A network learns one number, the scale of its similarities, and they go into the softmax without it."""
    reached = {id(p) for e in run.tape if e.name == "backward" for p in e.state.get("reached", [])}
    for event in steps(run):
        for param in held(event):
            one = not param.shape.open and all(d == 1 for d in param.shape.dims)
            if one and id(param) not in reached and param.trainable and param.place is not None and product.place:
                text = "these lie between -1 and 1, and go into the softmax without the scale that is learned for them"
                yield Answer(product.place, text, (param.place,))
                return


def without_exponential(run: Rehearsing) -> Iterator[Answer]:
    """A scale is learned as a logarithm (``Parameter(log(1 / 0.07))``), and similarities are multiplied by it as it
    is."""
    for node in trained(run):
        if node.op not in ("mul", "div") or len(node.inputs) < 2:
            continue
        for scale, rest in (node.inputs[:2], node.inputs[1::-1]):
            if (
                not isinstance(scale, Node)
                or not isinstance(rest, Node)
                or not (_unit(rest) or _product_of_units(rest))
            ):
                continue
            way, at = [], scale
            while isinstance(at, Node) and at.op in KEEPS_NUMBER and at.inputs:
                way.append(at)
                at = at.inputs[0]
            made = at.place if isinstance(at, Node) and at.op == "param" else None
            if made is not None and any(
                isinstance(c, ast.Call) and last_name(c.func) in LOGARITHMS for c in ast.walk(made[0])
            ):
                place = next((n.place for n in way if n.place is not None), None) or node.place
                if place is not None:
                    text = "the scale is learned as a logarithm, and the similarities are multiplied by it as it is"
                    yield Answer(place, text, (made,))
                    return


KEEPS_NUMBER = STRUCTURE | {"clamp", "clip", "minimum", "maximum", "min", "max"}
LOGARITHMS = frozenset(["log", "log2", "log10"])


def _product_of_units(node: Node) -> bool:
    """True for similarities of vectors of length one, whatever they were multiplied by before."""
    at: Value = node
    for _ in range(FEW):
        if not isinstance(at, Node):
            return False
        if _cosine(at):
            return True
        at = at.inputs[0] if at.op in STRUCTURE and at.inputs else None
    return False


FEW = 8


def _side(value: Value) -> tuple[float, Place | None, Value]:
    """Of one side of a product: the number in front of it, where that stands, and what is left."""
    factor, place = 1.0, None
    for _ in range(6):
        if not isinstance(value, Node) or value.op not in ("mul", "div") or len(value.inputs) < 2 or _unit(value):
            break
        number, rest = _gain(value.inputs[1]), value.inputs[0]
        if number is None and value.op == "mul":
            number, rest = _gain(value.inputs[0]), value.inputs[1]
        if not number:
            break
        factor, place = (factor / number if value.op == "div" else factor * number), place or _given_at(value, rest)
        value = rest
    return factor, place, value


def _given_at(product: Node, rest: Value) -> Place | None:
    """Where a scale is given its first value, if it is learned; else the product."""
    scale = next((i for i in product.inputs[:2] if i is not rest), None)
    made = next((n for n in near(scale, 6) if n.op == "param" and n.place is not None), None)
    return made.place if made is not None else product.place


def _gain(value: Value) -> float | None:
    """The number at the start of the training: of a parameter its first value."""
    plain = number_of(value)
    if plain is not None or not isinstance(value, Node) or not value.inputs:
        return plain
    inner = value.inputs[0]
    if value.op == "param" or value.op in ("clamp", "float", "mul", "tensor", "abs"):
        base = _gain(inner)
        if value.op == "mul" and len(value.inputs) > 1:
            other = _gain(value.inputs[1])
            return base * other if base is not None and other is not None else None
        return base
    if value.op in ("ones", "ones_like"):
        return 1.0
    if value.op in ("exp", "log"):
        base = _gain(inner)
        try:
            return None if base is None else math.exp(base) if value.op == "exp" else math.log(base)
        except (OverflowError, ValueError):
            return None
    return None


def _diagonal(node: Node) -> bool:
    target = node.inputs[1] if len(node.inputs) > 1 else None
    return isinstance(target, Node) and any(n.op in ("arange", "eye", "roll", "zeros") for n in near(target, 12))


def _cosine(node: Node) -> bool:
    """True for products of vectors of length one."""
    if node.op == "cosine_similarity":
        return True
    if node.op == "sum" and node.inputs and isinstance(node.inputs[0], Node) and node.inputs[0].op == "mul":
        node = node.inputs[0]  # row by row
    elif node.op not in ("matmul", "mm", "einsum", "bmm", "inner"):
        return False
    given = [p for i in node.inputs for p in parts(i)]
    return bool(given) and all(_unit(g) for g in given[:2])


def _unit(node: Node) -> bool:
    for _ in range(8):
        if node.op in ("normalize",) or (node.op == "div" and len(node.inputs) > 1 and _length(node.inputs[1])):
            return True
        if node.op in JOINS and node.inputs:
            items = list(parts(node.inputs[0]))
            return bool(items) and all(_unit(i) for i in items)
        if node.op not in STRUCTURE and node.op not in ("t", "T", "detach"):
            return False
        if not node.inputs or not isinstance(node.inputs[0], Node):
            return False
        node = node.inputs[0]
    return False


# ---------------------------------------------------------------------- masked pairs
def masked_to_zero(run: Rehearsing) -> Iterator[Answer]:
    """The smallest of distances (the hardest negative) where pairs that do not count were set to zero."""
    for node in trained(run):
        small = node.op in ("min", "amin") or (node.op == "topk" and node.options.get("largest") is False)
        if not small or not node.inputs or not isinstance(node.inputs[0], Node) or node.full.startswith("builtins."):
            continue
        if len(node.inputs) > 1 and isinstance(node.inputs[1], Node):
            continue  # the lesser of two values, element by element
        at: Value = node.inputs[0]
        for _ in range(4):
            if isinstance(at, Node) and at.op in STRUCTURE and at.inputs:
                at = at.inputs[0]
        if isinstance(at, Node) and (kept := _zeroed(at)) is not None and bounds(kept).low >= 0 and node.place:
            yield Answer(at.place or node.place, "the pairs that do not count are set to zero here and win the minimum",
                         (node.place,))  # fmt: skip
            return


def _zeroed(node: Node) -> Node | None:
    """What is multiplied by a mask, or filled with zero."""
    inputs = node.inputs
    if node.op == "mul" and len(inputs) > 1:
        for mask, kept in ((inputs[0], inputs[1]), (inputs[1], inputs[0])):
            if isinstance(mask, Node) and isinstance(kept, Node) and kept.grad and not mask.grad and _is_mask(mask):
                return kept
    if node.op == "masked_fill" and len(inputs) > 2 and inputs[2] in (0, 0.0) and isinstance(inputs[0], Node):
        return inputs[0]
    if node.op == "where" and len(inputs) > 2:
        for kept, filled in ((inputs[1], inputs[2]), (inputs[2], inputs[1])):
            zero = filled in (0, 0.0) if isinstance(filled, int | float) else (
                isinstance(filled, Node) and filled.op in ("zeros_like", "zeros"))  # fmt: skip
            if isinstance(kept, Node) and kept.grad and zero:
                return kept
    return None


def _is_mask(node: Node) -> bool:
    return any(n.op in ("eq", "ne", "lt", "gt", "le", "ge", "not", "invert", "and", "logical_not", "eye", "compare")
               for n in near(node, 10))  # fmt: skip
