"""Formulas that everybody writes, and one operation in them that is another: standardising, ratios of policies,
the straight-through estimator, squared distances, scaled attention."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.roles import PRODUCTS, STRUCTURE, backwards, trained, users
from trainwreck.code.rehearsal.questions.signs import terms

NUMBERS = frozenset(
    ["float", "float_value", "item", "clip", "clamp", "clamp_min", "maximum", "max", "tensor", "as_tensor"]
)
SPREADS = frozenset(["std", "nanstd"])
CENTRES = frozenset(["mean", "nanmean", "median"])
WAY = 6
"""Steps from the scores to the softmax: bias, mask, reshaping."""
LENGTHS = frozenset(["norm", "vector_norm", "rsqrt"])
TRUSTED = 0.5
"""Widths of the trusted range around a ratio of 1 lie between 0.1 and 0.3 (arXiv:1707.06347)."""
SMALL = 0.1
"""A constant below it that is added to a spread keeps it from zero and changes nothing else."""


# ---------------------------------------------------------------------- standardising
def standardised_wrongly(run: Rehearsing) -> Iterator[Answer]:
    """Mean and spread of the same values, put together otherwise than ``(x - mean) / std``."""
    yield from _put_together(run, ("mul", "div"))


def scaled_back_wrongly(run: Rehearsing) -> Iterator[Answer]:
    """Mean and spread of the same values, put together otherwise than ``z * std + mean``."""
    yield from _put_together(run, ("add", "sub"))


def _put_together(run: Rehearsing, ops: tuple[str, ...]) -> Iterator[Answer]:
    told: set[int] = set()
    for node in run.nodes:
        if node.op == "mul" and id(node) not in feeding(run):
            continue  # a figure that is looked at may be anything
        text = _misbuilt(node) if node.op in ops else ""
        if text and node.place is not None and id(node.place[0]) not in told:
            told.add(id(node.place[0]))
            yield Answer(node.place, text)


def _misbuilt(node: Node) -> str:
    if len(node.inputs) < 2:
        return ""
    one, other = node.inputs[:2]
    if node.op == "mul":
        for centred, spread in ((one, other), (other, one)):
            if _one_source(_centred(centred), _statistic(spread, SPREADS)):
                return "the mean is taken off and the rest multiplied by the standard deviation: to standardise, divide"
    elif node.op == "div":
        if _one_source(_centred(other), _statistic(one, SPREADS)):
            return "the standard deviation is divided by the distance from the mean: the two sides are swapped"
        if _one_source(_shifted(one), _statistic(other, SPREADS)):
            return "the mean is added before dividing by the standard deviation: to standardise, take it off"
    elif node.op == "sub" and _one_source(_statistic(other, CENTRES), _scaled_by(one, "mul")):
        return "the mean is taken off after multiplying by the standard deviation: to undo a standardisation, add it"
    elif node.op == "add" and _one_source(_statistic(other, CENTRES), _scaled_by(one, "div")):
        return "the mean is added after dividing by the standard deviation: to undo a standardisation, multiply"
    return ""


def _statistic(value: Value, ops: frozenset[str]) -> Node | None:
    """What a mean (or a spread) was taken of, through conversions and a small constant beside it."""
    for _ in range(8):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in ops:
            first = value.inputs[0]
            return first if isinstance(first, Node) else None
        if value.op == "add":
            small = next((i for i in value.inputs[:2] if isinstance(i, int | float) and abs(i) < SMALL), None)
            rest = [i for i in value.inputs[:2] if isinstance(i, Node)]
            if small is None or len(rest) != 1:
                return None
            value = rest[0]
        elif value.op in NUMBERS or value.op in STRUCTURE:
            value = value.inputs[0]
        elif value.op == "sqrt" and isinstance(value.inputs[0], Node) and value.inputs[0].op == "var":
            first = value.inputs[0].inputs[0]
            return first if isinstance(first, Node) else None
        else:
            return None
    return None


def _centred(value: Value) -> Node | None:
    """Of ``x - mean``: what the mean was taken of."""
    if isinstance(value, Node) and value.op == "sub" and len(value.inputs) > 1:
        return _statistic(value.inputs[1], CENTRES)
    return None


def _shifted(value: Value) -> Node | None:
    """Of ``x + mean``: what the mean was taken of."""
    if isinstance(value, Node) and value.op == "add" and len(value.inputs) > 1:
        return _statistic(value.inputs[1], CENTRES)
    return None


def _scaled_by(value: Value, op: str) -> Node | None:
    """Of ``z * std`` (or ``z / std``): what the spread was taken of."""
    if isinstance(value, Node) and value.op == op and len(value.inputs) > 1:
        return _statistic(value.inputs[1], SPREADS) or (_statistic(value.inputs[0], SPREADS) if op == "mul" else None)
    return None


def _one_source(one: Node | None, other: Node | None) -> bool:
    return one is not None and one is other


# ---------------------------------------------------------------------- ratios of policies
def clip_turned(run: Rehearsing) -> Iterator[Answer]:
    """The clipped objective of PPO (arXiv:1707.06347, equation 7) with the wrong one of two sides, or old over new."""
    for node, sign, ratio, _ in _clipped(run):
        answer = _ratio(ratio, "old")
        largest = node.op in ("max", "maximum")
        if answer is None and sign and largest == (sign < 0) and not _negated(node) and node.place is not None:
            which, other = ("larger", "smaller") if largest else ("smaller", "larger")
            answer = Answer(node.place, f"of the two sides the {which} is taken here, where the {other} one belongs")
        if answer is not None:
            yield answer


def ratio_misbuilt(run: Rehearsing) -> Iterator[Answer]:
    """A clipped ratio that is no ratio: the exponential is missing, or it is clipped to a range without 1 inside."""
    for _, _, ratio, clamp in _clipped(run):
        if ratio.op != "exp" and _around_zero(clamp):
            continue  # the first order of the same objective: the logarithm of the ratio, clipped around its 0
        answer = _bounds(clamp) or _ratio(ratio, "exp")
        if answer is not None:
            yield answer


def clipped_alone(run: Rehearsing) -> Iterator[Answer]:
    """The clipped ratio times the advantage without the minimum with the plain one; or the product clipped."""
    for event in backwards(run):
        for term in terms(event.subject):
            node = term.node
            answer = _product_clipped(node) if node.op in ("min", "minimum") else None
            weighed = term.sign and term.factors and node.op in ("clamp", "clip") and node.grad and _narrow(node)
            if weighed and node.place is not None and _of_policies(node.inputs[0] if node.inputs else None):
                text = "the clipped ratio stands alone: the minimum with the plain one is missing"
                answer = Answer(node.place, text)
            if answer is not None:
                yield answer
                return


def _product_clipped(node: Node) -> Answer | None:
    for plain, clamp in (node.inputs[:2], node.inputs[1::-1]) if len(node.inputs) > 1 else ():
        if isinstance(clamp, Node) and clamp.op in ("clamp", "clip") and clamp.inputs and _narrow(clamp):
            inner = clamp.inputs[0]
            same = isinstance(inner, Node) and inner.op == "mul" and isinstance(plain, Node) and plain.op == "mul"
            whole = same and {id(f) for f in _factors(inner)} == {id(f) for f in _factors(plain)}
            if whole and clamp.place is not None and any(_of_policies(f) for f in _factors(inner)):
                return Answer(clamp.place, "the product with the advantage is clipped here, and not the ratio")
    return None


def _narrow(clamp: Node) -> bool:
    """True for ``1 - eps .. 1 + eps``."""
    low, high = clamp.get("min", 1), clamp.get("max", 2)
    return isinstance(low, int | float) and isinstance(high, int | float) and 0 < low < 1 < high < 2


def _of_policies(value: Value) -> bool:
    """True for ``exp(new - old)`` of log-probabilities."""
    inner = value.inputs[0] if isinstance(value, Node) and value.op == "exp" and value.inputs else None
    if not isinstance(inner, Node) or inner.op != "sub" or len(inner.inputs) < 2:
        return False
    new, old = inner.inputs[:2]
    return isinstance(new, Node) and isinstance(old, Node) and new.grad and not old.grad


def _clipped(run: Rehearsing) -> Iterator[tuple[Node, int, Node, Node]]:
    """Each clipped objective: the minimum, the sign with which it enters the loss, the ratio, and its clamp."""
    told: set[int] = set()
    for event in backwards(run):
        for term in terms(event.subject):
            sides = _surrogate(term.node)
            if sides is not None and term.node.place is not None and id(term.node.place[0]) not in told:
                told.add(id(term.node.place[0]))
                yield (term.node, term.sign, *sides)


def _surrogate(node: Node) -> tuple[Node, Node] | None:
    """Ratio and clamp of ``min(ratio * adv, clamp(ratio) * adv)``."""
    if node.op not in ("min", "minimum", "max", "maximum") or len(node.inputs) < 2:
        return None
    factors = [_factors(i) for i in node.inputs[:2]]
    for plain, clipped in (factors, factors[::-1]):
        for clamp in clipped:
            if clamp.op in ("clamp", "clip") and clamp.grad and clamp.inputs:
                ratio = clamp.inputs[0]
                if isinstance(ratio, Node) and any(f is ratio for f in plain):
                    return ratio, clamp
    return None


def _factors(value: Value) -> list[Node]:
    if not isinstance(value, Node):
        return []
    if value.op == "neg":
        return _factors(value.inputs[0])
    if value.op == "mul":
        return [f for i in value.inputs[:2] for f in _factors(i)]
    return [value]


def _negated(node: Node) -> bool:
    """True where a minus stands inside, on a side of the minimum or on the advantage: its sign is not looked for."""
    todo = list(node.inputs[:2])
    while todo:
        value = todo.pop()
        if isinstance(value, Node):
            if value.op == "neg" or (value.op == "mul" and any(isinstance(i, int | float) for i in value.inputs)):
                return True
            if value.op == "mul":
                todo += list(value.inputs[:2])
    return False


def _ratio(ratio: Node, fault: str) -> Answer | None:
    if fault == "exp" and ratio.op == "div" and len(ratio.inputs) > 1 and ratio.place is not None:
        sides = [i for i in ratio.inputs[:2] if isinstance(i, Node)]
        if len(sides) == 2 and sides[0].grad and not sides[1].grad and all(_logarithm(s) for s in sides):
            return Answer(ratio.place, "log-probabilities are divided: the ratio is exp() of their difference")
    inner = ratio.inputs[0] if ratio.op == "exp" and ratio.inputs else ratio
    if not isinstance(inner, Node) or inner.op != "sub" or len(inner.inputs) < 2 or inner.place is None:
        return None
    new, old = (isinstance(i, Node) and i.grad for i in inner.inputs[:2])
    if fault == "exp" and ratio.op != "exp" and new and not old:
        return Answer(inner.place, "the ratio is the difference of the log-probabilities: exp() is missing")
    if fault == "old" and ratio.op == "exp" and old and not new:
        return Answer(inner.place, "the ratio is old over new: a likelier action gets a smaller ratio")
    return None


def _logarithm(node: Node) -> bool:
    at: Value = node
    for _ in range(8):
        if not isinstance(at, Node):
            return False
        if at.op in ("log_prob", "log_softmax"):
            return True
        if at.op not in STRUCTURE | {"sum", "mean", "stack", "batch"} or not at.inputs:
            return False
        at = at.inputs[0]
    return False


def _around_zero(clamp: Node) -> bool:
    low, high = clamp.get("min", 1), clamp.get("max", 2)
    return isinstance(low, int | float) and isinstance(high, int | float) and low < 0 < high


def _bounds(clamp: Node) -> Answer | None:
    low, high = clamp.get("min", 1), clamp.get("max", 2)
    if clamp.place is None or not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    if low >= high or not low <= 1 <= high:
        return Answer(clamp.place, f"the ratio is clipped to {low:g}..{high:g}, which leaves no room around 1")
    if 0 < low < TRUSTED and math.isclose(low, high - 1, rel_tol=1e-9):
        return Answer(clamp.place, f"the ratio is clipped to {low:g}..{high:g}: 1 - {low:g} is meant for the lower end")
    return None


# ---------------------------------------------------------------------- straight through
def straight_through_wrong(run: Rehearsing) -> Iterator[Answer]:
    """``z + (q - z).detach()`` whose two ``z`` do not cancel: the value that goes on is no code."""
    told: set[int] = set()
    for node in trained(run):
        if node.op != "add" or len(node.inputs) < 2 or node.place is None or id(node.place[0]) in told:
            continue
        for kept, cut in (node.inputs[:2], node.inputs[1::-1]):
            if not (isinstance(kept, Node) and kept.grad and isinstance(cut, Node) and cut.op in ("detach", "data")):
                continue
            inner = cut.inputs[0] if cut.inputs else None
            if not isinstance(inner, Node) or inner.op not in ("sub", "add") or len(inner.inputs) < 2:
                continue
            first, second = inner.inputs[:2]
            if (inner.op == "sub" and first is kept) or (inner.op == "add" and kept in (first, second)):
                told.add(id(node.place[0]))
                yield Answer(
                    node.place, "the two sides do not cancel: z + (q - z).detach() has the value of q, this has not"
                )


# ---------------------------------------------------------------------- distances and attention
def distance_wrong(run: Rehearsing) -> Iterator[Answer]:
    """A squared distance written out as ``a**2 + 2ab + b**2`` of which the nearest is looked for."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in ("argmin", "min", "topk") or not node.inputs:
            continue
        parts = [t for t in terms(node.inputs[0])]
        squares = [t for t in parts if t.sign > 0 and _square(t.node)]
        products = [t for t in parts if t.node.op in PRODUCTS]
        wrong = [t for t in products if t.sign > 0]
        if len(squares) >= 2 and len(products) == len(wrong) == 1 and len(parts) == len(squares) + 1:
            place = wrong[0].node.place
            if place is not None and id(place[0]) not in told:
                told.add(id(place[0]))
                yield Answer(
                    place, "a squared distance has -2ab in it: with a plus the farthest code counts as the nearest"
                )


def _square(node: Node) -> bool:
    return node.op in ("pow", "square") or (
        node.op == "mul" and len(node.inputs) > 1 and node.inputs[0] is node.inputs[1]
    )


def attention_scaled_up(run: Rehearsing) -> Iterator[Answer]:
    """Scores that are multiplied by the root of the head's size on their way to a softmax."""
    told: set[int] = set()
    for node in trained(run):
        scores = _scores(node)
        if scores is None or node.place is None or id(node.place[0]) in told:
            continue
        size, factor = scores
        if math.isclose(factor, math.sqrt(size), rel_tol=1e-3) and size > 1 and _softmaxed(run, node):
            told.add(id(node.place[0]))
            yield Answer(node.place, f"the scores are multiplied by the root of {size:g}; to keep them small, divide")


def weights_without_softmax(run: Rehearsing) -> Iterator[Answer]:
    """Masked scores with ``-inf`` that are multiplied with values as they are."""
    told: set[int] = set()
    for node in trained(run):
        if node.op != "masked_fill" or node.get("value", 2) != -math.inf or node.place is None:
            continue
        for user in users(run).get(id(node), ()):
            first = user.inputs[0] if user.inputs else None
            if user.op in PRODUCTS and first is node and user.place is not None and id(user.place[0]) not in told:
                told.add(id(user.place[0]))
                text = "scores with -inf in them are used as weights: no softmax stands between"
                yield Answer(user.place, text, (node.place,))


def _softmaxed(run: Rehearsing, node: Node) -> bool:
    level = [node]
    for _ in range(WAY):
        level = [user for one in level for user in users(run).get(id(one), ())]
        if any(user.op == "softmax" for user in level):
            return True
        level = [user for user in level if user.op in ("masked_fill", "where", "add") or user.op in STRUCTURE]
    return False


def _scores(node: Node) -> tuple[float, float] | None:
    """Size of a head and the factor, of a product of two projections that is multiplied by a number."""
    if node.op != "mul" or len(node.inputs) < 2:
        return None
    for product, factor in (node.inputs[:2], node.inputs[1::-1]):
        if isinstance(product, Node) and product.op in PRODUCTS and isinstance(factor, int | float) and factor > 1:
            query = product.inputs[0] if product.inputs else None
            dims = query.shape.dims if isinstance(query, Node) else ()
            units = all(_unit(i) for i in product.inputs[:2])
            if dims and isinstance(dims[-1], int) and not units:
                return float(dims[-1]), float(factor)
    return None


def _unit(value: Value) -> bool:
    """True for vectors of length one: their products are cosines, and are scaled up on purpose."""
    for _ in range(WAY):
        if not isinstance(value, Node) or not value.inputs:
            return False
        if value.op == "normalize":
            return True
        if value.op in ("div", "mul") and len(value.inputs) > 1:
            return any(n.op in LENGTHS for n in near(value.inputs[1], WAY))
        value = value.inputs[0]
    return False
