"""Likelihoods that a network tells for a number (place and spread, or a mixture of such): are they densities?

Whatever the network says, the likelihood of all values together is one. That is worked out (``trial``): the objective
is computed for the target at many places of the axis, for several outputs of the network, and its exponential is summed
up. Where the sum depends on the outputs, the objective falls without any better prediction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE, backwards, unknown, users
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown
from trainwreck.core.row import Row

SCALES = frozenset(["exp", "softplus", "elu", "abs", "square", "pow", "reciprocal", "sqrt", "rsqrt"])
"""What a spread is made with, so that it is above zero."""
LAYERS = RAW | frozenset(["lstm", "gru", "rnn", "grucell", "lstmcell", "embedding"])
STOPS = frozenset(["detach", "detach_", "data", "erf", "cdf", "erfc", "icdf", "ndtr"])
"""With these an objective is no likelihood as it stands: weights that are held fixed, scores of whole distributions."""
DRAWS = 4
POINTS, REACH = 301, 5.5
"""Places on the axis: close together around zero and wide apart far out, up to sinh(5.5), 122 on each side."""
SPREAD = 0.7
"""Of the outputs that are tried, where a spread is made of them."""
WIDER = 4
"""So many times that of others: shares of one and of next to nothing, places apart."""
CLEAR = 0.02
"""The logarithm of the sum may differ by less: a Cauchy density's tails beyond the axis hold 1/200 of it for each
unit of its width."""
TESTS = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "invert"])
SUMMARIES = frozenset(["mean", "std", "var", "amax", "norm", "median", "nanmean", "quantile"])
MOST_NODES, FEW, MOST_ELEMENTS = 120, 10, 500
POWERS = tuple(2.0 ** (n / 4) for n in range(-32, 9))
"""A likelihood to a power has its best at the same place, and the spread up to a factor."""


class Likelihood(Row):
    """An objective with the target in it, what the network tells, and the differences of the two."""

    loss: Node
    target: Node
    outputs: tuple[Node, ...]
    inner: tuple[Node, ...]
    residuals: tuple[Node, ...]
    scales: tuple[Node, ...]
    """Means and spreads of other data, by which what is told is scaled: 1 here."""


def likelihood_turned(run: Rehearsing) -> Iterator[Answer]:
    """The logarithm of a density is minimised instead of its negative."""
    for found, place in _likelihoods(run):
        try:
            logs = _logs(found)
        except Unknown:
            continue
        if _apart(logs, 1.0) > CLEAR and any(_apart(logs, -power) < CLEAR for power in (1.0, 0.5, 2.0)):
            yield Answer(found.loss.place or place, "the likelihood of the data is minimised: the minus is missing")
            return


def logarithm_turned(run: Rehearsing) -> Iterator[Answer]:
    """The logarithm of the spread is taken off where it is to be added, or the other way round."""
    for found, last in _likelihoods(run):
        for output in found.outputs:
            sums = [n for n in _added(found, output) if n.place is not None] if _in_scale(found, output) else []
            try:
                wrong = bool(sums) and min(_apart(_logs(found), power) for power in POWERS) > CLEAR
                right = [n for n in sums if wrong and min(_apart(_logs(found, flip=n), p) for p in POWERS) < CLEAR]
            except Unknown:
                continue
            if right:
                text = "with its other sign this would be a likelihood: the logarithm of the spread is turned round"
                yield Answer(right[0].place or last, text, (last,))
                return


def spread_free(run: Rehearsing) -> Iterator[Answer]:
    """Errors are divided by a spread that the network tells, and nothing keeps the spread from growing."""
    yield from _improper(run, weights=False)


def weights_free(run: Rehearsing) -> Iterator[Answer]:
    """The weights of a mixture don't add up to one."""
    yield from _improper(run, weights=True)


def _improper(run: Rehearsing, *, weights: bool) -> Iterator[Answer]:
    for found, last in _likelihoods(run):
        try:
            logs = _logs(found)
            if min(_apart(logs, sign * power) for power in POWERS for sign in (1.0, -1.0)) < CLEAR:
                continue
            guilty = [o for o in found.outputs if _apart(_logs(found, only=o), 1.0) > CLEAR]
            scales = [o for o in guilty if _in_scale(found, o) and not _added(found, o)]
            slopes = [_slope(found, o) for o in scales]
        except Unknown:
            continue
        if not weights and scales and all(0.5 < abs(s) < 1.5 for s in slopes):
            text = "the spread that the network tells divides the error and its logarithm is no part of the loss: "
            text += "the larger the spread, the lower the loss"
            yield Answer(_formula(run, found) or last, text, (last,))
            return
        if weights and guilty and not any(_in_residual(found, o) or _in_scale(found, o) for o in guilty):
            at = _before(run, found, guilty[0])
            text = "the weights of this mixture are no logarithms of shares: they don't add up to one"
            if at is not None and at.place is not None:
                yield Answer(at.place, text, (last,))
                return


# ---------------------------------------------------------------------- what the objective is made of
def _likelihoods(run: Rehearsing) -> list[tuple[Likelihood, Place]]:
    if "likelihoods" not in run.memo:
        made = [(_read(e.subject), e.place) for e in backwards(run) if isinstance(e.subject, Node)]
        if not any(m is not None for m, _ in made):  # of some rows alone: those that a mask leaves
            made = [(_read(n), e.place) for e in backwards(run) for n in _masked(e.subject)]
        run.memo["likelihoods"] = [(m, p) for m, p in made if m is not None and p is not None]
    known: list[tuple[Likelihood, Place]] = run.memo["likelihoods"]
    return known


def _masked(loss: Value) -> Iterator[Node]:
    """What is computed for each row and counts where a mask says so: ``where(there, nll, 0)``, ``nll[there]``."""
    for node in ancestors(loss, through=lambda n: n.grad and n.op != "param"):
        sides = node.inputs[1:3] if node.op == "where" else node.inputs[:1] if node.op == "getitem" else ()
        mask = node.inputs[node.op != "where"] if sides and len(node.inputs) > 1 else None
        if isinstance(mask, Node) and any(n.op in TESTS for n in near(mask, 4)):
            yield from (s for s in sides if isinstance(s, Node) and s.grad and not _output(s))


def _read(loss: Node) -> Likelihood | None:
    inner: list[Node] = []
    outputs: list[Node] = []
    bases: dict[int, Node] = {}
    for node in ancestors(loss, through=lambda n: n.grad and not _output(n)):
        if len(inner) > MOST_NODES or (node.grad and unknown(node)) or (node.grad and node.op in STOPS):
            return None
        if _output(node):
            outputs.append(node)
        elif node.grad:
            inner.append(node)
        elif carries(node) and node.op not in ("attribute", "counter"):
            base = _base(node)
            bases[id(base)] = base
    scales = {key: b for key, b in bases.items() if any(n.op in SUMMARIES for n in near(b, FEW))}
    rest = [b for key, b in bases.items() if key not in scales]
    if len(rest) != 1 or not outputs:
        return None
    target = rest[0]
    if target.shape.open or not target.shape.dims or len(target.shape.dims) > 2:
        return None
    residuals = [n for n in inner if n.op == "sub" and len(n.inputs) > 1 and _meets(n, target)]
    found = Likelihood(loss, target, tuple(outputs), tuple(inner), tuple(residuals), tuple(scales.values()))
    mixed = any(n.op == "logsumexp" and any(a is target for a in ancestors(n)) for n in inner)
    told = any(n.op == "log_prob" for n in inner)
    single = len(residuals) == 1 and any(_in_scale(found, o) for o in outputs)
    if _width(target) != 1:  # numbers that are told each by itself: all alike here, as one of them
        wide = (o for o in outputs if o.op == "param" or o.shape.open or o.shape.dims[-1:] != target.shape.dims[1:])
        return found if single and not mixed and not told and not any(wide) else None
    return found if single or (mixed and (residuals or told)) else None


def _width(target: Node) -> int | None:
    return target.shape.dims[1] if len(target.shape.dims) > 1 else 1


def _output(node: Node) -> bool:
    """What a layer gives, or a part of it: one layer often tells places and spreads side by side."""
    if node.op in ("part", "getitem"):
        at: Node | None = node
        for _ in range(6):
            moves = at is not None and at.op in CUTS and bool(at.inputs) and not _picks_rows(at)
            inner = at.inputs[0] if moves and at is not None else None
            at = inner if isinstance(inner, Node) else None
            if at is not None and at.op in RAW:
                return True
        return False
    return node.op in LAYERS or node.op == "param"


CUTS = frozenset("part getitem chunk split unbind tensor_split view reshape unflatten transpose permute".split())


def _picks_rows(node: Node) -> bool:
    """True for ``out[mask]``, ``out[3]``: samples are taken, not what is told of each."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else ()
    first = index[0] if isinstance(index, tuple) and index else index
    return node.op == "getitem" and not (
        first is Ellipsis or (isinstance(first, Obj) and first.args[:2] == (None, None))
    )


def _base(node: Node) -> Node:
    for _ in range(8):
        moved = node.op in STRUCTURE and node.op not in ("getitem", "gather", "masked_select", "index_select")
        inner = node.inputs[0] if moved and node.inputs else None
        if not isinstance(inner, Node):
            break
        node = inner
    return node


def _meets(node: Node, target: Node) -> bool:
    """True for the difference of the target and of what the network tells."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    return len(sides) == 2 and any(_base(s) is target for s in sides if not s.grad) and any(s.grad for s in sides)


def _within(found: Likelihood, node: Node) -> list[Node]:
    """What the objective is computed from between ``node`` and the outputs."""
    inner = {id(n) for n in (*found.inner, *found.outputs)}
    return [n for n in ancestors(node, through=lambda n: not _output(n)) if id(n) in inner]


def _in_residual(found: Likelihood, output: Node) -> bool:
    return any(n is output for r in found.residuals for n in _within(found, r))


def _in_scale(found: Likelihood, output: Node) -> bool:
    """True for what errors are multiplied with or divided by, made above zero."""
    for node in found.inner:
        if node.op == "log_prob":
            scale = node.owner.attributes.get("scale") if node.owner is not None else None
            if isinstance(scale, Node) and any(n is output for n in _within(found, scale)):
                return True
        if node.op not in ("mul", "div") or len(node.inputs) < 2:
            continue
        for one, other in (node.inputs[:2], node.inputs[1::-1]):
            if not isinstance(one, Node) or not isinstance(other, Node):
                continue
            behind, beside = _within(found, one), _within(found, other)
            if not any(r in beside for r in found.residuals) or any(r in behind for r in found.residuals):
                continue
            if any(n is output for n in behind) and any(n.op in SCALES for n in behind):
                return True
    return False


def _added(found: Likelihood, output: Node) -> list[Node]:
    """The sums in which an output (or its logarithm) is a term beside the error, whatever its sign."""
    sums: list[Node] = []
    for node in found.inner:
        sides = [_within(found, i) for i in node.inputs[:2] if isinstance(i, Node)]
        if node.op in ("add", "sub") and len(sides) == 2 and node not in found.residuals:
            told = [any(n is output for n in side) for side in sides]
            errs = [any(r in side for r in found.residuals) for side in sides]
            if (told[0] and not errs[0] and errs[1]) or (told[1] and not errs[1] and errs[0]):
                sums.append(node)
    return sums


# ---------------------------------------------------------------------- working it out
def _logs(found: Likelihood, only: Node | None = None, flip: Node | None = None) -> list[Array]:
    """The objective at all places of the axis, for several outputs; ``only``: this one differs, the others stay.
    ``flip``: this sum is a difference, or the other way round."""
    import numpy as np

    random = np.random.default_rng(5)
    spreads = {id(o): SPREAD if _in_scale(found, o) else WIDER * SPREAD for o in found.outputs}
    first = {id(o): spreads[id(o)] * random.standard_normal(_size(o)) for o in found.outputs}
    made: list[Array] = []
    for _ in range(DRAWS):
        drawn = {id(o): spreads[id(o)] * random.standard_normal(_size(o)) for o in found.outputs}
        arrays = drawn if only is None else {**first, id(only): drawn[id(only)]}
        made.append(_along_axis(found, arrays, flip))
    return made


def _slope(found: Likelihood, output: Node) -> float:
    """By how much the logarithm of the sum rises with an output, all of whose elements rise alike."""
    import numpy as np

    random = np.random.default_rng(6)
    first = {id(o): 0.3 * random.standard_normal(_size(o)) for o in found.outputs}
    low, high = ({**first, id(output): first[id(output)] + by} for by in (0.0, 0.5))
    sums = [_sum(_along_axis(found, arrays), 1.0) for arrays in (low, high)]
    return (sums[1] - sums[0]) / 0.5


class Rows(Bench):
    """One row for each place of the axis: what reduces the batch to one number leaves one for each row."""

    flip: Node | None = None
    """A sum that is taken for a difference, or the other way round."""
    beside: tuple[Node, ...] = ()
    """Sums whose second term is made of the target alone (the slope of its logarithm): it teaches nothing."""

    def _worked(self, node: Node) -> Array:
        first, second = (*node.inputs, None, None)[:2]
        if node.op in ("mean", "sum") and not node.shape.open and not node.shape.dims and isinstance(first, Node):
            whole = self.work(first)
            if whole.ndim and whole.shape[0] == POINTS:
                rest = tuple(range(1, whole.ndim))
                return whole.mean(axis=rest) if node.op == "mean" else whole.sum(axis=rest)
        if node.op == "div" and isinstance(second, Node) and second.op in ("len", "size", "numel"):
            return self.work(first)  # the mean of a sum over the batch
        if any(node is n for n in self.beside):
            return self.work(first)
        if node is self.flip:
            one, other = self.work(first), self.work(second)
            return one - other if node.op == "add" else one + other
        return super()._worked(node)


def _along_axis(found: Likelihood, arrays: dict[int, Array], flip: Node | None = None) -> Array:
    import numpy as np

    bench = Rows()
    bench.flip = flip
    bench.beside = tuple(n for n in found.inner if n not in found.residuals and _of_target(found, n))
    for output in found.outputs:
        rows = (POINTS, *_size(output)[1:]) if output.op != "param" else _size(output)
        array = arrays[id(output)] if _width(found.target) == 1 else arrays[id(output)][..., :1]
        bench.set(output, np.broadcast_to(array, rows))
    for scale in found.scales:
        bench.set(scale, np.asarray(1.0))
    wide = (POINTS, *_size(found.target)[1:])
    bench.set(found.target, np.broadcast_to(_axis().reshape(-1, *(1 for _ in wide[1:])), wide))
    values = bench.work(found.loss)
    if values.shape != (POINTS,):
        raise Unknown
    return values


def _of_target(found: Likelihood, node: Node) -> bool:
    other = node.inputs[1] if node.op in ("add", "sub") and len(node.inputs) > 1 else None
    return isinstance(other, Node) and not other.grad and any(n is found.target for n in ancestors(other))


def _axis() -> Array:
    import numpy as np

    return np.sinh(np.linspace(-REACH, REACH, POINTS))


def _size(node: Node) -> tuple[int, ...]:
    """The sizes of one sample's part of an output, or of a parameter."""
    dims = node.shape.dims if node.op == "param" else (1, *node.shape.dims[1:])
    if node.shape.open or None in dims or math.prod(d or 1 for d in dims) > MOST_ELEMENTS:
        raise Unknown
    return tuple(d or 1 for d in dims)


def _apart(logs: list[Array], power: float) -> float:
    """How far the logarithms of the sums lie apart, of the density to this power."""
    sums = [_sum(each, power) for each in logs]
    return max(sums) - min(sums) if all(map(math.isfinite, sums)) else math.inf


def _sum(values: Array, power: float) -> float:
    """The logarithm of the density's sum over the axis; infinite where it doesn't fall towards both ends."""
    import numpy as np

    density = -power * values
    widths = np.cosh(np.linspace(-REACH, REACH, POINTS))
    known = np.isfinite(density)
    if not known.any() or density[known].argmax() in (0, known.sum() - 1):
        return math.inf
    top = density[known].max()
    return float(top + np.log((np.exp(density[known] - top) * widths[known]).sum() * 2 * REACH / (POINTS - 1)))


# ---------------------------------------------------------------------- where
def _formula(run: Rehearsing, found: Likelihood) -> Place | None:
    """The formula that the error stands in: the last operation on numbers of each value."""
    inner = {id(n) for n in found.inner}
    at = found.residuals[0] if found.residuals else None
    for _ in range(12):
        if at is None:
            return None
        after = [u for u in users(run).get(id(at), ()) if id(u) in inner and u.op in FORMULA]
        if not after:
            return at.place
        at = after[0]
    return at.place if at is not None else None


FORMULA = frozenset(["mul", "div", "pow", "square", "neg", "add", "sub", "abs"])


def _before(run: Rehearsing, found: Likelihood, output: Node) -> Node | None:
    """What an output has become when it meets the target."""
    inner = {id(n) for n in found.inner}
    at = output
    for _ in range(12):
        after = [u for u in users(run).get(id(at), ()) if id(u) in inner]
        if len(after) != 1 or any(a is found.target for a in ancestors(after[0])):
            return at
        at = after[0]
    return None


__all__ = ["likelihood_turned", "logarithm_turned", "spread_free", "weights_free"]
