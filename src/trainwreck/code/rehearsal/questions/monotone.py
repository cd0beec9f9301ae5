"""Results computed from results (skill, explained variance, decibels, shares within a tolerance): where do they go?"""

from __future__ import annotations

from itertools import islice

from trainwreck.code.rehearsal.domain import Items, Node, Value
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors, parts

RISES = frozenset(
    "log2 log10 expm1 sigmoid tanh clamp clamp_min clamp_max clip pow_ nan_to_num asarray nansum cumsum".split()
)
"""What grows where its input does."""
ENDS = frozenset(["builtins.max", "builtins.min", "numpy.maximum", "numpy.minimum", "torch.maximum", "torch.minimum"])
ABOVE, BELOW = frozenset(["gt", "ge"]), frozenset(["lt", "le"])
MAX_NODES = 2_000


def judged(value: Value) -> bool:
    """True where a network's parameters stand behind the value."""
    return any(n.op == "param" for n in islice(ancestors(value), MAX_NODES))


def steady(node: Node) -> bool:
    """True for a number that no training changes: a baseline, a spread, a mask of the labels."""
    known = node.attributes.get("?steady")
    if not isinstance(known, bool):  # asked of the same nodes for each of many results
        known = not any(n.op == "param" or n.op in OPAQUE for n in ancestors(node))
        node.attributes["?steady"] = known
    return known


def misses(node: Node) -> bool:
    """``prediction != label``."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    return node.op == "ne" and len(sides) == 2 and judged(sides[0]) is not judged(sides[1])


def agrees(node: Node) -> bool:
    """True for a correlation of predictions and labels, and for what both hold as a share of what each of them holds
    (overlap, Dice, precision, recall)."""
    if node.op in CORRELATIONS:
        return True
    top, under = (*node.inputs, None, None)[:2]
    if node.op not in ("div", "true_divide", "truediv") or not isinstance(top, Node) or not isinstance(under, Node):
        return False
    both = _both(top)
    if both is None:
        return False
    one, other = both
    held = {id(n) for n in ancestors(under)}
    known = [n for side in (one, other) for n in (side, *parts(side.inputs[:1]))]
    return judged(one) is not judged(other) and any(id(n) in held for n in known)


def quantile_error(node: Node) -> bool:
    """``maximum(q * gap, (q - 1) * gap)``: the error of a quantile."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node) and i.op == "mul"]
    if node.op not in ("maximum", "max", "where") or len(sides) != 2:
        return False
    gaps = [{id(i) for i in s.inputs if isinstance(i, Node) and i.op == "sub"} for s in sides]
    return bool(gaps[0] & gaps[1])


def _both(value: Node) -> tuple[Node, Node] | None:
    """The two sides of the product whose sum a value is, times a number or with one added at most."""
    at, summed = value, False
    for _ in range(DEPTH):
        sides = [i for i in at.inputs[:2] if isinstance(i, Node)]
        if summed and at.op in ("mul", "and", "logical_and", "minimum") and len(sides) == 2:
            return sides[0], sides[1]
        summed = summed or (at.op == "sum" and at.full != "builtins.sum")
        kept = at.op in ("sum", "item", "float", "to", "getitem") or (at.op in ("mul", "add") and len(sides) == 1)
        if not kept or not sides:
            return None
        at = sides[0]
    return None


CORRELATIONS = frozenset(["spearmanr", "pearsonr", "kendalltau", "corrcoef"])
DEPTH = 10


def followed(node: Node) -> list[tuple[Node, bool]] | None:
    """(a value, whether the result falls where it rises) of those that decide about ``node``; None where not known.

    Divisors and factors that no training changes are taken to be above zero."""
    one, other = (*node.inputs, None, None)[:2]
    if node.op in RISES:
        return _with([one], False)
    if node.full in ENDS:
        return _with([*node.inputs], False)
    if node.op == "pow" and isinstance(other, int | float) and isinstance(one, Node):
        # an error to the second power; a difference of two values is told by itself
        return _with([one], other < 0) if other != 0 and one.op not in ("sub", "add") else None
    if node.op in ABOVE | BELOW and isinstance(one, Node) and (not isinstance(other, Node) or steady(other)):
        return _with([one], node.op in BELOW) if not steady(one) else None
    if node.op == "sub" and isinstance(one, Node) and isinstance(other, Node):
        if steady(one) is steady(other):
            return None
        return _with([one], False) if steady(other) else _with([other], True)
    if node.op in ("div", "true_divide", "truediv") and isinstance(other, Node) and not steady(other):
        fixed = (isinstance(one, int | float) and one > 0) or (isinstance(one, Node) and steady(one))
        return _with([other], True) if fixed else None
    if node.op in ("and", "logical_and", "bitwise_and") and isinstance(one, Node) and isinstance(other, Node):
        return [(i, False) for i in (one, other) if not steady(i)] if steady(one) is not steady(other) else None
    return None


def _with(values: list[Value], turned: bool) -> list[tuple[Node, bool]]:
    return [(n, turned) for v in values if not isinstance(v, Items) or v.items for n in parts(v)]


__all__ = ["agrees", "followed", "judged", "misses", "quantile_error", "steady"]
