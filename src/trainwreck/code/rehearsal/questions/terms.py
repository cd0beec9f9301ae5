"""What a loss is the sum of: its terms with their weights, and the averages and sums that lie around each."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.bounds import origin
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions.places import once
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, backwards, core
from trainwreck.core.row import Row

REDUCING = frozenset(["mean", "sum", "nanmean", "nansum"])
MAX_TERMS = 60
PASSED = frozenset(["scale", "dropout", "all_reduce", "nan_to_num", "either"])


class Term(Row):
    """``weight * factors * reductions(node)`` is added to the loss."""

    node: Node
    weight: float
    """The product of all numbers in front of it, with the sign."""
    factors: tuple[Node, ...] = ()
    """Values in front of it that are not known and hang in no graph (a ramp, a mask)."""
    reductions: tuple[Node, ...] = ()
    """``mean`` and ``sum`` around it, outermost first."""
    sure: bool = True
    """False where the term stands in one of several branches."""
    path: tuple[Node, ...] = ()

    @property
    def sign(self) -> int:
        return 1 if self.weight > 0 else -1 if self.weight < 0 else 0


def terms(loss: Value) -> list[Term]:
    """The summands of a loss; sums and differences within averages are taken apart too."""
    found: list[Term] = []
    for one in candidates(loss):
        if isinstance(one, Node):
            _split(Term(one, 1.0), found, 0)
    return found


def _split(term: Term, found: list[Term], depth: int) -> None:
    if len(found) >= MAX_TERMS or depth > 60:
        return
    inner = list(_apart(term))
    if not inner:
        found.append(term)
        return
    for one in inner:
        _split(one, found, depth + 1)


def _apart(term: Term) -> Iterator[Term]:
    """What one operation is the sum of; nothing where it is no sum."""
    node = term.node
    inputs = node.inputs
    first = inputs[0] if inputs else None
    path = (*term.path, node)
    if node.op in ("add", "sub") and len(inputs) >= 2:
        factor = node.options.get("alpha", 1)
        for number, item in enumerate(inputs[:2]):
            minus = -1.0 if node.op == "sub" and number else 1.0
            if number and isinstance(factor, int | float):
                minus *= factor
            yield from _one(term, item, minus, path)
    elif node.op == "neg":
        yield from _one(term, first, -1.0, path)
    elif node.op in ("mul", "div") and len(inputs) >= 2:
        yield from _product(term, node, path)
    elif node.op in REDUCING and isinstance(first, Node) and node.full[:9] != "builtins.":
        yield term._replace(node=first, reductions=(*term.reductions, node), path=path)
    elif node.op in JOINS or (node.op in REDUCING and isinstance(first, Items | tuple)):
        items = list(first) if isinstance(first, tuple) else list(first.items) if isinstance(first, Items) else []
        for item in items:
            yield from _one(term, item, 1.0, path)
    elif node.op == "either":
        for item in candidates(node):
            if isinstance(item, Node):
                yield term._replace(node=item, sure=False, path=path)
    elif (kept := floored(node)) is not None:
        yield term._replace(node=kept, path=path)
    elif node.op in (STRUCTURE | PASSED) - {"detach", "detach_", "data"} and isinstance(first, Node):
        yield term._replace(node=first, path=path)


def floored(node: Node) -> Node | None:
    """What a floor above zero holds up (free bits of a divergence): ``kl.clamp(min=0.5)``, ``maximum(kl, floor)``.

    No hinge, whose floor is zero: there what is taken off is no term of its own."""
    if node.op not in ("clamp", "clip", "clamp_min", "maximum", "max") or not node.inputs:
        return None
    learned = [i for i in node.inputs[:2] if isinstance(i, Node) and i.grad]
    floor = node.options.get("min", node.inputs[1] if len(node.inputs) > 1 else None)
    if len(learned) != 1 or node.options.get("max") is not None or len(node.inputs) > 2 + ("min" in node.options):
        return None
    floor = next((i for i in node.inputs[:2] if i is not learned[0]), floor) if node.op in ("maximum", "max") else floor
    number = number_of(floor)
    known = number is not None and number > 0
    return learned[0] if known or (isinstance(floor, Node) and number is None and not floor.grad) else None


def _one(term: Term, item: Value, factor: float, path: tuple[Node, ...]) -> Iterator[Term]:
    if isinstance(item, Node):
        yield term._replace(node=item, weight=term.weight * factor, path=path)


def _product(term: Term, node: Node, path: tuple[Node, ...]) -> Iterator[Term]:
    one, other = node.inputs[0], node.inputs[1]
    if node.op == "div":
        if isinstance(other, int | float) and isinstance(one, Node) and other:
            yield term._replace(node=one, weight=term.weight / other, path=path)
        elif isinstance(one, Node) and isinstance(other, Node) and one.grad and not other.grad:
            yield term._replace(node=one, factors=(*term.factors, other), path=path)
        return
    number = number_of(other)
    for constant, rest in ((number_of(one), other), (number, one)):
        if constant is not None and isinstance(rest, Node):
            yield term._replace(node=rest, weight=term.weight * constant, path=path)
            return
    if isinstance(one, Node) and isinstance(other, Node) and one.grad != other.grad:
        kept, factor = (one, other) if one.grad else (other, one)
        yield term._replace(node=kept, factors=(*term.factors, factor), path=path)


def number_of(value: Value) -> float | None:
    """The number that a value is: written out, or in a tensor of one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Node) and value.op in ("tensor", "as_tensor", "float") and len(value.inputs) >= 1:
        return number_of(value.inputs[0])
    if isinstance(value, Node) and value.op in ("param", "buffer") and value.trainable is not True and value.inputs:
        return number_of(value.inputs[0])
    return None


def weighed_at(run: Rehearsing, term: Term, least: float = 1.0) -> Place | None:
    """Where the largest number in front of a term is written: its literal, or the product."""
    best: tuple[float, Node, int] | None = None
    for node in term.path:
        for number, item in enumerate(node.inputs[:2] if node.op == "mul" else ()):
            known = number_of(item)
            if known is not None and abs(known) > max(least, best[0] if best is not None else 0):
                best = (abs(known), node, number)
    return number_at(run, best[1], best[2]) if best is not None else None


def number_at(run: Rehearsing, node: Node, number: int) -> Place | None:
    """Where the number that is this input of a product is written: its literal, or the product."""
    if node.place is None:
        return None
    at, scope = node.place
    if isinstance(at, ast.BinOp):
        side = at.right if number else at.left
        if isinstance(side, ast.Name | ast.Attribute | ast.Subscript):
            known = number_of(node.inputs[number])
            found = origin(run.project, side, scope)
            if (found is None or found[0] is side or _same_line(found, node.place)) and known is not None:
                return once(run, known) or found
            return found
    return node.place


def _same_line(one: Place, other: Place) -> bool:
    return getattr(one[0], "lineno", 0) == getattr(other[0], "lineno", -1)


def losses_of(run: Rehearsing) -> Iterator[tuple[Event, list[Term]]]:
    """Each backward (the last turn of a place) with the terms of its loss."""
    memo = run.memo.setdefault("terms", {})
    for event in backwards(run):
        if id(event) not in memo:
            memo[id(event)] = terms(event.subject)
        yield event, memo[id(event)]


def parameters_behind(value: Value, *, through_grad: bool = False) -> dict[int, Node]:
    """The parameters that stand behind a value; ``through_grad``: only those that it hangs on."""
    walked = ancestors(value, through=lambda n: n.op != "param" and (n.grad or not through_grad))
    return {id(n): n for n in walked if n.op == "param"}


def fitted(node: Node) -> tuple[Node, Node] | None:
    """Output and target of a squared (or like) error of which one side only has a gradient."""
    pair = squared_error(node)
    if pair is None or pair[0].grad == pair[1].grad:
        return None
    return pair if pair[0].grad else pair[::-1]


def fits(run: Rehearsing) -> Iterator[tuple[Event, Term, Node, Node]]:
    """Each term of a loss that compares an output with a target by such an error: (backward, term, output, target)."""
    for event, all_terms in losses_of(run):
        for term in all_terms:
            pair = fitted(term.node)
            if pair is not None:
                yield event, term, *pair


def squared_error(node: Node) -> tuple[Node, Node] | None:
    """The two sides of ``(a - b) ** 2``, ``(a - b).square()``, ``.abs()``, ``norm(a - b)`` or of a loss for errors."""
    inputs = node.inputs
    if node.op in ERRORS and len(inputs) >= 2 and isinstance(inputs[0], Node) and isinstance(inputs[1], Node):
        gap = _difference(inputs[0]) if inputs[1].op in ("zeros", "zeros_like", "new_zeros") else None
        return gap or (inputs[0], inputs[1])
    if node.op in ("pow", "square", "abs", "norm") and inputs and isinstance(inputs[0], Node):
        if node.op == "pow" and (len(inputs) < 2 or inputs[1] not in (2, 2.0)):
            return None
        inner = inputs[0]
        for _ in range(4):
            if inner.op in STRUCTURE and inner.inputs and isinstance(inner.inputs[0], Node) and inner.op != "detach":
                inner = inner.inputs[0]
        if inner.op == "div" and isinstance(inner.inputs[0], Node):
            inner = inner.inputs[0]  # by a deviation
        return _difference(inner)
    if node.op in ("mul",) and len(inputs) == 2 and inputs[0] is inputs[1] and isinstance(inputs[0], Node):
        return _difference(inputs[0])
    return None


ERRORS = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cosine_embedding_loss"])


def _difference(node: Node) -> tuple[Node, Node] | None:
    if node.op == "sub" and len(node.inputs) >= 2:
        one, other = node.inputs[:2]
        if isinstance(one, Node) and isinstance(other, Node):
            return one, other
    return None


def averaged(term: Term) -> str:
    """How a term is brought to one number: ``mean`` (over all its elements), ``sum`` (over all), ``sum of each``
    (over some axes, with a mean over others), or empty where it isn't known."""
    kinds = [(r.op.removeprefix("nan"), axes(r)) for r in term.reductions]
    own = term.node.options.get("reduction") if term.node.op in REDUCED else None
    if term.node.op in REDUCED:
        own = own if own is not None else "mean"
        if own in ("mean", "batchmean", "sum"):
            kinds.append((str(own), None))
    if not kinds:
        return ""
    inner, over = kinds[-1]
    if len(kinds) > 1 and all(kind == "sum" for kind, _ in kinds):
        return "sum"
    if inner == "mean" and over == (0,) and len(kinds) > 1 and all(kind == "sum" for kind, _ in kinds[:-1]):
        return "sum of each"  # first the mean over the samples, then the sum of what is left
    if inner in ("mean",) and (over is None or len(kinds) == 1):
        return "mean" if all(k != "sum" for k, _ in kinds) else ""
    if inner == "batchmean" or (inner == "sum" and over is not None and over != (0,)):
        return "sum of each"
    if inner == "sum" and over is None:
        return "sum"
    return "mean" if all(k == "mean" for k, _ in kinds) else ""


REDUCED = frozenset(
    """mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits cross_entropy
    nll_loss kl_div gaussian_nll_loss poisson_nll_loss""".split()
)


def axes(node: Node) -> tuple[int, ...] | None:
    """The axes that a reduction runs over; None for all."""
    given = node.options.get("dim", node.options.get("axis"))
    if given is None:
        rest = [i for i in node.inputs[1:] if isinstance(i, int | tuple | Items) and not isinstance(i, bool)]
        given = rest[0] if rest else None
    if isinstance(given, Items):
        given = tuple(given.items)
    if isinstance(given, int) and not isinstance(given, bool):
        return (given,)
    return tuple(a for a in given if isinstance(a, int)) if isinstance(given, tuple) and given else None


class Divergence(Row):
    """A Gaussian KL term: of the posterior whose mean is ``mean``."""

    term: Term
    weight: float
    """In units in which the usual formula with its half has the weight 1."""


def divergences(found: list[Term]) -> list[Divergence]:
    """The Gaussian KL terms among the summands: ``exp(v) - v`` (or ``s**2 - 2 log s``) together with a square."""
    made: list[Divergence] = []
    for term in found:
        if term.node.op == "kl_divergence":
            made.append(Divergence(term, term.weight))
            continue
        spread = variance_of(term.node)
        if spread is None or not _has_log(spread, term, found):
            continue
        made.append(Divergence(term, 2 * term.weight))
    return made


def variance_of(node: Node) -> Node | None:
    """What a variance is the exponential or the square of."""
    inputs = node.inputs
    if node.op == "exp" and inputs and isinstance(inputs[0], Node):
        return inputs[0]
    square = node.op in ("pow", "square") and inputs and isinstance(inputs[0], Node)
    if square and (node.op == "square" or (len(inputs) > 1 and inputs[1] in (2, 2.0))):
        inner = core(inputs[0])
        if len(inner) == 1 and inner[0].op in ("exp", "softplus", "sqrt", "clamp", "add", "mul"):
            return inner[0]
    return None


def _has_log(spread: Node, term: Term, found: list[Term]) -> bool:
    """True where a logarithm of the same variance is subtracted."""
    mine = {id(n) for n in ancestors(spread, through=_plain)}
    for other in found:
        if other is term or other.sign != -term.sign:
            continue
        at: Value = other.node
        if isinstance(at, Node) and at.op == "log" and at.inputs:
            at = at.inputs[0]
        if isinstance(at, Node) and ({id(n) for n in ancestors(at, through=_plain)} & mine) and other.node.op != "pow":
            return True
    return False


def _plain(node: Node) -> bool:
    return node.op in ("mul", "div", "exp", "log", "pow", "square", "clamp", "add", "softplus", "sqrt", *STRUCTURE)


LIKELIHOODS = frozenset(
    """binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss gaussian_nll_loss
    poisson_nll_loss""".split()
)


def reconstructions(found: list[Term], kl: list[Divergence]) -> list[Term]:
    """The terms that compare an output of a network with data, beside KL terms."""
    out = []
    for term in found:
        pair = squared_error(term.node)
        to_data = pair is not None and pair[0].grad != pair[1].grad
        if to_data or term.node.op in LIKELIHOODS or (term.node.op == "log_prob" and term.sign < 0):
            out.append(term)
    return [t for t in out if all(t is not d.term for d in kl)]
