"""Which way each term of an objective is pushed: the sign with which it enters what runs backward."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, behind, bounds, core, learns, users
from trainwreck.code.rehearsal.questions.terms import floored
from trainwreck.core.row import Row

ERRORS = frozenset(
    """cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss
    huber_loss gaussian_nll_loss poisson_nll_loss ctc_loss""".split()
)
LOG_LIKELIHOODS = frozenset(["log_softmax", "logsigmoid", "log_prob"])
PASSES = frozenset(["mean", "sum", "scale", "amax"]) | STRUCTURE
NEGATIVE = pattern(r"neg|diff|other|wrong", re.IGNORECASE)
POSITIVE = pattern(r"pos|same|match", re.IGNORECASE)


class Term(Row):
    """A summand of an objective: ``sign`` +1 if it is minimised, -1 if maximised, 0 where that depends on data."""

    node: Node
    sign: int
    place: Place | None
    """Where the sign was given: the last minus on the way, else None."""
    factors: tuple[Value, ...] = ()
    """What it is multiplied with and is no constant."""


def terms(value: Value) -> list[Term]:
    """The summands of an objective."""
    found: list[Term] = []
    _split(value, 1, None, (), found, 0)
    return found


def _split(
    value: Value, sign: int, place: Place | None, factors: tuple[Value, ...], found: list[Term], depth: int
) -> None:
    if not isinstance(value, Node) or depth > 60 or len(found) > 60:
        return
    inputs = value.inputs
    if value.op == "neg":
        _split(inputs[0], -sign, value.place, factors, found, depth + 1)
    elif value.op == "add":
        for item in inputs[:2]:
            _split(item, sign, place, factors, found, depth + 1)
    elif value.op == "sub" and len(inputs) > 1:
        _split(inputs[0], sign, place, factors, found, depth + 1)
        _split(inputs[1], -sign, value.place, factors, found, depth + 1)
    elif value.op in ("mul", "div") and len(inputs) > 1:
        _product(value, sign, place, factors, found, depth)
    elif (kept := floored(value)) is not None:
        _split(kept, sign, place, factors, found, depth + 1)
    elif value.op == "either" or value.op in PASSES or value.op in ("stack", "cat"):
        inner = behind(value) if value.op not in ("mean", "sum", "scale", "amax") else list(inputs[:1])
        for item in inner or []:
            for one in item.items if isinstance(item, Items) else item if isinstance(item, tuple) else [item]:
                _split(one, sign, place, factors, found, depth + 1)
    else:
        found.append(Term(value, sign, place, factors))


def _product(
    value: Node, sign: int, place: Place | None, factors: tuple[Value, ...], found: list[Term], depth: int
) -> None:
    one, other = value.inputs[:2]
    if value.op == "div":
        low = bounds(other)
        turned = sign if low.low >= 0 else -sign if low.high <= 0 else sign
        _split(one, turned, place, factors, found, depth + 1)
        return
    for factor, rest in ((one, other), (other, one)):
        if isinstance(factor, int | float):
            turned = sign if factor > 0 else -sign
            _split(rest, turned, value.place if factor < 0 else place, factors, found, depth + 1)
            return
    weights = [s for s in (one, other) if isinstance(s, Node) and not s.grad]
    if len(weights) == 1:
        weight = weights[0]
        rest = other if weight is one else one
        interval = bounds(weight)
        turned = -sign if interval.high <= 0 else sign
        _split(rest, turned, place, (*factors, weight), found, depth + 1)
        return
    found.append(Term(value, sign, place, factors))


def flipped(run: Rehearsing) -> Iterator[Answer]:
    """Errors, divergences and likelihoods that are pushed the wrong way."""
    if len([o for o in run.objects if is_optimizer(o)]) > 1 or _ascends(run):
        return
    for event in backwards(run):
        found = [t for t in terms(event.subject) if t.node.grad]
        if not found or event.place is None:
            continue
        answer = (
            _errors(found, event.place)
            or _likelihood(run, found, event.place)
            or _share(run, found, event.place)
            or _gaussian(found, event.place)
            or _triplet(run, event.subject, event.place)
        )
        if answer is not None:
            yield answer


def divergence(run: Rehearsing) -> Iterator[Answer]:
    """The divergence from the prior is pushed the wrong way, and the error beside it is not."""
    for event in backwards(run):
        found = [t for t in terms(event.subject) if t.node.grad]
        if event.place is None or any(t.sign < 0 and (t.node.op in ERRORS or by_hand(t.node)) for t in found):
            continue
        answer = _gaussian(found, event.place)
        if answer is not None:
            yield answer


def _ascends(run: Rehearsing) -> bool:
    """True where an optimizer maximises, or only an input is optimised (an attack, a visualisation)."""
    for optimizer in [o for o in run.objects if is_optimizer(o)]:
        if optimizer.get("maximize") not in (None, False):
            return True
        params, whole = run.optimized(optimizer)
        if whole and params and all(p.owner is None and not p.name for p in params):
            return True
    return False


def _errors(found: list[Term], backward: Place) -> Answer | None:
    """The negative of an error is all that is minimised."""
    errors = [t for t in found if t.node.op in ERRORS or by_hand(t.node)]
    wrong = [t for t in errors if t.sign < 0 and not t.factors]
    if not wrong or len(wrong) < len(errors) or any(t.node.op not in ERRORS and not by_hand(t.node) for t in found):
        return None
    return Answer(wrong[0].place or backward, "the negative of the error is minimised", (backward,))


def by_hand(node: Node) -> bool:
    """A square or absolute value of the difference of an output and data."""
    square = node.op in ("square", "abs") or (node.op == "pow" and node.inputs[1:2] == (2,))
    if not square or not node.inputs or not isinstance(node.inputs[0], Node):
        return False
    inner = node.inputs[0]
    if inner.op != "sub" or len(inner.inputs) < 2:
        return False
    one, other = inner.inputs[:2]
    return isinstance(one, Node) and isinstance(other, Node) and one.grad != other.grad and _data(one) != _data(other)


def _data(value: Node) -> bool:
    return not learns(value)


def _likelihood(run: Rehearsing, found: list[Term], backward: Place) -> Answer | None:
    """Log-probabilities of what was seen are minimised."""
    likely = [t for t in found if t.node.op in LOG_LIKELIHOODS or _log_of_share(t.node)]
    for term in likely:
        if term.sign < 0 or len(likely) != len(found) or not all(bounds(f).low >= 0 for f in term.factors):
            continue
        if term.node.op not in ("log_softmax", "logsigmoid") and term.factors:
            continue
        if term.node.op == "log_prob" and _sampled(term.node):
            continue
        text = "the likelihood of the data is minimised: the minus is missing"
        return Answer(_sum_place(run, term, backward), text, (backward,))
    return None


def _log_of_share(node: Node) -> bool:
    """The logarithm of a softmax, picked or whole."""
    return (
        node.op == "log"
        and bool(node.inputs)
        and all(n.op == "softmax" for n in core(node.inputs[0]))
        and any(core(node.inputs[0]))
    )


def _share(run: Rehearsing, found: list[Term], backward: Place) -> Answer | None:
    """``score - logsumexp(scores)``, the logarithm of a share (Cox, InfoNCE, a softmax by hand), is minimised.

    Not where one with the other sign stands beside it, nor where weights of unknown sign lie in front."""
    wrong: Place | None = None
    for whole in found:
        scores = _exponents(whole.node)
        if scores is None:
            continue
        held = _scores(scores)
        for part in found:
            if part is whole or part.sign != -whole.sign or not held & _scores(part.node):
                continue
            if whole.sign > 0 or not all(bounds(f).low >= 0 for f in (*whole.factors, *part.factors)):
                return None
            wrong = _sum_place(run, whole, backward) if whole.factors and _after(whole) else whole.place
            wrong = wrong or part.place or backward
    if wrong is None:
        return None
    return Answer(wrong, "the likelihood of what was seen is minimised: the difference is turned round", (backward,))


def _after(whole: Term) -> bool:
    """True for ``score - logsumexp(scores)``: the difference is right, and the minus in front of it is missing."""
    node = whole.place[0] if whole.place is not None else None
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)


def _exponents(node: Node) -> Value:
    """The scores in a ``logsumexp``, of whatever spelling; None for anything else."""
    if node.op in ("logsumexp", "logcumsumexp", "logaddexp") and node.inputs:
        return node.inputs[0]
    inner = node.inputs[0] if node.op == "log" and node.inputs else None
    for _ in range(6):
        if not isinstance(inner, Node) or not inner.inputs:
            return None
        if inner.op == "exp":
            return inner.inputs[0]
        if inner.op not in ("sum", "cumsum", "add", "mul", "clamp", "clamp_min", "masked_fill", "flip"):
            return None
        inner = next((i for i in inner.inputs if isinstance(i, Node) and i.grad), None)
    return None


def _scores(value: Value) -> set[int]:
    """What scores are, before they are picked, scaled or masked."""
    return {id(n) for n in ancestors(value, through=_picked) if n.grad and n.op != "param"}


def _picked(node: Node) -> bool:
    """A selection, a mask, a shift or a scale; an average of scores with their own probabilities is none."""
    if node.op in ("mul", "div", "add", "sub"):
        return sum(isinstance(i, Node) and i.grad for i in node.inputs[:2]) == 1
    return node.grad and (node.op in ("masked_fill", "where", "clamp") or node.op in STRUCTURE)


def _sampled(log_prob: Node) -> bool:
    """The likelihood of a sample that hangs in the graph itself: its expectation is minus the entropy."""
    return any(isinstance(i, Node) and i.grad for i in log_prob.inputs[1:])


def _sum_place(run: Rehearsing, term: Term, backward: Place) -> Place:
    """The statement in which the log-probabilities become a number."""
    at = term.node
    for _ in range(20):
        after = [u for u in users(run).get(id(at), ()) if u.grad]
        at = next((u for u in after if not u.shape.dims and not u.shape.open), after[0] if after else at)
        if at.op in ("mean", "sum") and at.place is not None and not at.shape.dims:
            return at.place
        if not after:
            break
    return term.place or backward


def _gaussian(found: list[Term], backward: Place) -> Answer | None:
    """``exp(v)`` and ``v`` of one log-variance: the divergence from a standard normal grows with ``exp(v) - v``."""
    by_core: dict[int, list[tuple[Term, str]]] = {}
    for term in found:
        node = term.node
        if node.op == "exp" and node.inputs:
            for inner in core(node.inputs[0]):
                by_core.setdefault(id(inner), []).append((term, "exp"))
        for inner in core(node):
            by_core.setdefault(id(inner), []).append((term, "plain"))
    for pairs in by_core.values():
        grown = [t for t, kind in pairs if kind == "exp" and _weighed(t)]
        plain = [t for t, kind in pairs if kind == "plain" and t.node.op != "exp" and _weighed(t)]
        if grown and plain and all(t.sign < 0 for t in grown) and all(t.sign > 0 for t in plain):
            mean = [t for t in found if _squared(t.node) and t.sign < 0]
            if mean:
                place = grown[0].place or backward
                return Answer(place, "the divergence from the prior is maximised", (backward,))
    return None


def _squared(node: Node) -> bool:
    return node.op in ("pow", "square") or (node.op == "mul" and node.inputs[:1] == node.inputs[1:2])


def _weighed(term: Term) -> bool:
    """True where all that stands in front is one number for all samples, as a weight or a ramp is: not below zero."""
    return all(
        isinstance(f, Node) and not f.shape.open and not f.shape.dims and not any(n.op in DATA for n in ancestors(f))
        for f in term.factors
    )


DATA = frozenset(["batch", "element", "param", "grad"])


def _triplet(run: Rehearsing, loss: Value, backward: Place) -> Answer | None:
    """``relu(d(a, n) - d(a, p) + margin)``, told by the names of what is compared."""
    for node in ancestors(loss):
        if node.op not in ("relu", "clamp", "clamp_min", "softplus", "maximum") or not node.inputs or not node.grad:
            continue
        parts_ = terms(node.inputs[0])
        signs: dict[str, int] = {}
        for term in parts_:
            kind = distance(term.node)
            side = _side(run, term.node)
            if kind and side and not term.factors:
                signs[side] = term.sign * kind
        if signs == {"positive": -1, "negative": 1} and node.place is not None:
            inner = node.inputs[0]
            place = inner.place if isinstance(inner, Node) and inner.place is not None else node.place
            return Answer(place, "the pair that belongs together is pushed apart", (backward,))
    return None


def distance(node: Node) -> int:
    """+1 for a distance, -1 for a similarity, 0 for neither; also of those that a mask and an extreme pick."""
    for _ in range(8):
        picks = node.op in ("max", "min", "amax", "amin", "part", "masked_fill", "where", "sum") or node.op in STRUCTURE
        inner = [i for i in node.inputs[:3] if isinstance(i, Node) and i.grad]
        if not picks or len(inner) != 1:
            break
        node = inner[0]
    if node.op in ("pairwise_distance", "norm", "cdist", "sqrt", "square", "pow", "abs", "vector_norm", "dist"):
        return 1
    if node.op in ("cosine_similarity", "matmul", "mul", "einsum"):
        return -1
    return 0


def _side(run: Rehearsing, node: Node) -> str:
    """Which pair is compared, by the names in the expression."""
    if node.place is None:
        return ""
    for text in (_assigned(run, node), _written(run, node)):
        positive, negative = bool(POSITIVE.search(text)), bool(NEGATIVE.search(text))
        if positive != negative:
            return "positive" if positive else "negative"
    return ""


def _assigned(run: Rehearsing, node: Node) -> str:
    """The names that a value is given."""
    statement = run.project.statement(*node.place) if node.place is not None else None
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return " ".join(n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))


def _written(run: Rehearsing, node: Node) -> str:
    """The names that the expression of a value is made of, and the one that it is given."""
    found: list[str] = []
    for inner in (node, *[i for i in node.inputs[:2] if isinstance(i, Node)]):
        if inner.place is None:
            continue
        found += [n.id for n in ast.walk(inner.place[0]) if isinstance(n, ast.Name) and n.id not in ("F", "torch")]
        statement = run.project.statement(*inner.place)
        if isinstance(statement, ast.Assign):
            found += [t.id for t in statement.targets if isinstance(t, ast.Name)]
    return " ".join(found)
