"""Data standardised by hand: is what is subtracted a mean, and what is divided by a spread?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import key_of

SPREADS = frozenset(["std", "var", "nanstd", "nanvar"])
CENTRES = frozenset(["mean", "nanmean", "median", "nanmedian", "sum", "nansum"])
KEEPS = frozenset(
    "T mT t add clip clamp clamp_min maximum item float astype reshape view getitem unsqueeze either to buffer".split()
)


SQUARES = frozenset(["square", "pow", "power", "mul"])


def not_standard(run: Rehearsing) -> Iterator[Answer]:
    """A sum subtracted where a mean is meant, or a division by the variance."""
    told: set[int] = set()
    for centre, spread, rooted, divisor in standardised(run):
        if centre.op in ("sum", "nansum"):
            wrong, text = centre, "the sum is subtracted here, not the mean: the inputs are far off zero"
        elif spread.op in ("var", "nanvar") and not rooted:
            wrong, text = spread, "the inputs are divided by their variance, not by its root"
        elif spread.op in ("std", "nanstd") and (square := _squared(divisor, spread)) is not None:
            wrong, text = square, "the inputs are divided by the square of their standard deviation"
        else:
            continue
        if wrong.place is not None and id(wrong.place[0]) not in told:
            told.add(id(wrong.place[0]))
            yield Answer(wrong.place, text, (spread.place,) if spread.place is not None and wrong is centre else ())


def _squared(divisor: Value, spread: Node) -> Node | None:
    """The square between a spread and what is divided by."""
    for node in ancestors(divisor, through=lambda n: n is not spread and (n.op in KEEPS or n.op in SQUARES)):
        power = node.inputs[1] if len(node.inputs) > 1 else None
        if (
            node.op == "square"
            or (node.op in ("pow", "power") and power in (2, 2.0))
            or (node.op == "mul" and power is node.inputs[0])
        ):
            return node
    return None


def put_together_wrongly(run: Rehearsing) -> Iterator[Answer]:
    """Mean and spread of the same rows, with which others are multiplied, shifted the wrong way, or divided upside
    down."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in ("mul", "div", "sub") or node.grad or len(node.inputs) < 2 or node.place is None:
            continue
        one, other = node.inputs[:2]
        if node.op == "sub":
            wrong = isinstance(other, Node) and other.op == "div" and _mean_by_spread(one, other)
            text = "only the mean is divided by the standard deviation here: the difference should be (brackets)"
        elif node.op == "mul":
            wrong = _pair(one, "sub", other) or _pair(other, "sub", one)
            text = "the mean is taken off and the rest multiplied by the standard deviation: to standardise, divide"
        elif _pair(one, "add", other):
            wrong, text = (
                True,
                "the mean is added before dividing by the standard deviation: to standardise, take it off",
            )
        else:
            wrong = _pair(other, "sub", one)
            text = "the standard deviation is divided by the distance from the mean: the two sides are swapped"
        if wrong and id(node.place[0]) not in told:
            told.add(id(node.place[0]))
            yield Answer(node.place, text)


def _pair(shifted: Value, op: str, scale: Value) -> bool:
    """True where one side was shifted by the mean of the very rows that the other is the spread of."""
    if not isinstance(shifted, Node) or shifted.op != op or len(shifted.inputs) < 2:
        return False
    centre, _ = _statistic(shifted.inputs[1], CENTRES)
    spread, _ = (None, False) if _inverse(scale) else _statistic(scale, SPREADS)
    if centre is None or spread is None or not centre.inputs or not spread.inputs:
        return False
    if not isinstance(shifted.inputs[0], Node) or any(n.op == "param" for n in ancestors(centre)):
        return False
    return centre.inputs[0] is spread.inputs[0] or key_of(centre.inputs[0]) == key_of(spread.inputs[0])


def _mean_by_spread(data: Value, quotient: Node) -> bool:
    """True for ``mean / std`` of the same rows, taken off their like: not off what was divided already."""
    centre, _ = _statistic(quotient.inputs[0], CENTRES)
    spread, _ = _statistic(quotient.inputs[1], SPREADS) if len(quotient.inputs) > 1 else (None, False)
    if centre is None or spread is None or not isinstance(data, Node) or data.op in ("div", "mul"):
        return False
    if any(n.op == "param" for n in ancestors(centre)):
        return False
    return centre.inputs[0] is spread.inputs[0] or key_of(centre.inputs[0]) == key_of(spread.inputs[0])


def _inverse(scale: Value) -> bool:
    """True for one over a spread: ``rsqrt``, a negative power."""
    for _ in range(8):
        if not isinstance(scale, Node) or scale.op in SPREADS:
            return False
        if scale.op in ("rsqrt", "reciprocal"):
            return True
        power = scale.inputs[1] if scale.op == "pow" and len(scale.inputs) > 1 else 1
        if not isinstance(power, int | float) or power < 0:
            return True
        scale = scale.inputs[0] if scale.inputs else None
    return False


def axes_apart(run: Rehearsing) -> Iterator[Answer]:
    """A mean and a spread of the same data along different axes."""
    told: set[int] = set()
    for centre, spread, _, _ in standardised(run):
        one, other = _axis(centre), _axis(spread)
        if one == other or centre.op in ("sum", "nansum") or not _different(centre, one, other):
            continue
        wrong, right = (centre, spread) if one not in (0, (0,)) else (spread, centre)
        if wrong.place is not None and id(wrong.place[0]) not in told:
            told.add(id(wrong.place[0]))
            text = f"mean and spread of the same data are taken along different axes ({one} and {other})"
            yield Answer(wrong.place, text, (right.place,) if right.place is not None else ())


def standardised(run: Rehearsing) -> Iterator[tuple[Node, Node, bool, Value]]:
    """(what is subtracted, what is divided by, whether a root was taken of it, the divisor) of ``(x - mean) / std``."""
    for node in run.nodes:
        if node.op != "div" or len(node.inputs) < 2 or node.grad or not isinstance(node.inputs[0], Node):
            continue
        upper = node.inputs[0]
        if upper.op != "sub" or len(upper.inputs) < 2:
            continue
        centre, _ = _statistic(upper.inputs[1], CENTRES)
        spread, rooted = _statistic(node.inputs[1], SPREADS)
        if centre is None or spread is None or not centre.inputs or not spread.inputs:
            continue
        if centre.inputs[0] is spread.inputs[0] or key_of(centre.inputs[0]) == key_of(spread.inputs[0]):
            yield centre, spread, rooted, node.inputs[1]


def _statistic(value: Value, wanted: frozenset[str]) -> tuple[Node | None, bool]:
    rooted = False
    for _ in range(8):
        if not isinstance(value, Node):
            break
        if value.op in wanted and value.full != "builtins.sum":
            return value, rooted
        if value.op in ("sqrt", "pow", "power", "square", "rsqrt"):
            rooted = True
        elif value.op not in KEEPS:
            break
        value = value.inputs[0] if value.inputs else None
    return None, rooted


def _axis(node: Node) -> Value:
    return node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else None))


def _different(node: Node, one: Value, other: Value) -> bool:
    """True for axes that are known not to be the same."""
    known = all(
        v is None or isinstance(v, int) or (isinstance(v, tuple) and all(isinstance(i, int) for i in v))
        for v in (one, other)
    )
    base = node.inputs[0]
    axes = len(base.shape.dims) if isinstance(base, Node) and not base.shape.open else None
    if not known or None in (one, other):
        return False
    sides = [v if isinstance(v, tuple) else (v,) for v in (one, other)]
    if any(i < 0 for side in sides for i in side):
        return axes is not None and {i % axes for i in sides[0]} != {i % axes for i in sides[1]}
    few, many = sorted((set(s) for s in sides), key=len)
    return not few <= many  # a mean of each sample, and a spread over all of them, are meant
