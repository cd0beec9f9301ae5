"""Normalising flows, worked out with small arrays: is the objective the density that the change of variables gives, and
does the sampler undo what the flow does?

Weights are drawn by us, so that nothing stands at zero; the logarithm of the stretch is that of the Jacobian, which is
taken by differences. Said only where the whole can be worked out."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from contextlib import suppress

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import CHOSEN_BY, Event, Node, Place, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.flows import is_density, stretches
from trainwreck.code.rehearsal.questions.log_dets import left_out, reduced_otherwise
from trainwreck.code.rehearsal.questions.roles import JOINS, RAW, backwards
from trainwreck.code.rehearsal.questions.terms import Term, terms
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown
from trainwreck.core.row import Row

ROWS, MOST_ROWS = 5, 1024
STEP = 1e-5
CLOSE = 1e-3
"""Differences of this size come from the Jacobian's own rounding."""
WIDTHS = range(2, 17)
CANDIDATES = 40
"""Values from the first on that all weights stand behind: one of them is the sample."""
LARGEST = 1e4
"""Latents beyond it leave too few digits."""
SCALE = 0.3
"""Deviation of our weights: large enough to stretch, small enough not to saturate."""
SUMS = frozenset(["add", "sub", "mul", "div"])
TAKES = frozenset(["randn", "randn_like", "normal", "sample"])


class Flow(Row):
    """``data`` become ``latent``, and ``density`` is one number for each row of them."""

    event: Event
    base: Term
    data: Node
    latent: Node
    density: Node


class _Trial(Bench):
    """Of branches that nothing decides the first one is taken, for all that hang on one test."""

    def _worked(self, node: Node) -> Array:
        if node.op != "either":
            return super()._worked(node)
        with suppress(Unknown):
            return super()._worked(node)
        found = [c for c in candidates(node) if c is not None]
        test = node.attributes.get(CHOSEN_BY)
        turned = isinstance(test, Node) and test.op in ("not", "ne", "invert")
        if len(found) != 2 or not isinstance(test, Node):
            raise Unknown
        return self.work(found[1 if turned else 0])


class _Weights:
    """The same drawn arrays for the same parameters in all trials."""

    def __init__(self, seed: int = 7) -> None:
        import numpy as np

        self.random = np.random.default_rng(seed)
        self.known: dict[int, Array] = {}

    def __call__(self, node: Node) -> Array | None:
        if node.op != "param" or node.shape.open or not all(isinstance(d, int) for d in node.shape.dims):
            return None
        if id(node) not in self.known:
            self.known[id(node)] = SCALE * self.random.normal(size=tuple(d or 1 for d in node.shape.dims))
        return self.known[id(node)]

    def work(self, value: Node, given: dict[int, Array]) -> Array:
        return _Trial(given, self).work(value)


def _flow(run: Rehearsing) -> Flow | None:
    for event in backwards(run):
        for base in terms(event.subject):
            squared = is_density(base.node) and base.node.op != "log_prob" and base.node.grad and base.sign
            latent = base.node.inputs[0] if squared and base.node.inputs else None
            if not isinstance(latent, Node) or not stretches(base.node):
                continue
            density = next((n for n in base.path if len(n.shape.dims) == 1), None)
            inside = ancestors(latent, through=lambda n: n.grad)
            data = {id(n): n for n in inside if not n.grad and _wide(n)}
            if density is not None and len(data) == 1:
                return Flow(event, base, next(iter(data.values())), latent, density)
    return None


def _wide(node: Node) -> bool:
    return not node.shape.open and len(node.shape.dims) == 2 and node.shape.dims[1] in WIDTHS


def _rows(data: Node) -> Array:
    import numpy as np

    count, width = data.shape.dims
    if (count or ROWS) > MOST_ROWS:
        raise Unknown
    return np.random.default_rng(3).normal(size=(count or ROWS, width or 0))


def _stretch(weights: _Weights, source: Node, result: Node, at: Array) -> Array:
    """The logarithm of the absolute determinant of what ``result`` makes of ``source``, for each row."""
    import numpy as np

    columns = []
    for axis in range(at.shape[1]):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[:, axis] += sign * STEP
            ends.append(weights.work(result, {id(source): moved}))
        columns.append((ends[0] - ends[1]) / (2 * STEP))
    jacobian = np.stack(columns, axis=2)
    if jacobian.shape != (at.shape[0], at.shape[1], at.shape[1]):
        raise Unknown
    sign, logarithm = np.linalg.slogdet(jacobian)
    if not np.all(np.isfinite(logarithm)) or not np.all(sign):
        raise Unknown
    return logarithm


def _constant(values: Array) -> bool:
    import numpy as np

    return bool(np.all(np.isfinite(values))) and float(np.ptp(values)) < CLOSE


def sign_wrong(run: Rehearsing) -> Iterator[Answer]:
    """The objective is the density of the data under the flow but for a sign: of a layer, of all, or of the square."""
    for answer, sign in _density(run):
        if sign:
            yield answer


def stretch_wrong(run: Rehearsing) -> Iterator[Answer]:
    """What a layer gives as the logarithm of its stretch is not that, nor its negative."""
    if any(True for _ in (*left_out(run), *reduced_otherwise(run))):
        return
    for answer, sign in _density(run):
        if not sign:
            yield answer


def _density(run: Rehearsing) -> list[tuple[Answer, bool]]:
    if "worked flow" not in run.memo:
        run.memo["worked flow"] = []
        with suppress(Unknown, ValueError, TypeError, IndexError, ArithmeticError):
            found = _flow(run)
            answer = _judged(run, found, _Weights()) if found is not None else None
            run.memo["worked flow"] = [answer] if answer is not None else []
    kept: list[tuple[Answer, bool]] = run.memo["worked flow"]
    return kept


def _judged(run: Rehearsing, found: Flow, weights: _Weights) -> tuple[Answer, bool] | None:
    rows = _rows(found.data)
    given = {id(found.data): rows}
    told, normal, stretch = _parts(found, weights, rows)
    offsets = _offsets(told, normal, stretch)
    again = _offsets(*_parts(found, _Weights(8), rows))
    if any(abs(a - b) < CLOSE for a, b in zip(offsets, again, strict=True)):
        return None
    proof = tuple(p for p in (found.density.place, found.event.place) if p is not None)
    layers = list(_layers(run, found))
    judged = [(logarithm, _told_right(weights, event, logarithm, rows)) for event, logarithm in layers]
    kinds = {right for _, right in judged}
    if "" in kinds:
        return None
    some = "right" in kinds or "wrong" in kinds
    blamed = [(n, right) for n, right in judged if right == "wrong" or (right == "turned" and some)]
    if blamed and blamed[0][0].place is not None:
        text = "this is not the logarithm of what the layer stretches by: worked out, its Jacobian gives another"
        return Answer(blamed[0][0].place, text, proof), blamed[0][1] == "turned"
    if kinds == {"right"} and not _constant(sum(weights.work(n, given) for n, _ in judged) - stretch):
        return None  # it is told elsewhere that some layers are left out of the sum
    if any(_constant(s * told + normal - stretch) for s in (1, -1)):
        if found.base.sign > 0 and found.density.place is not None:
            text = "where the data are stretched their density falls: the logarithms have the wrong sign here"
            return Answer(found.density.place, text, proof), True
        if found.base.node.place is not None:
            text = "the density of the latent rises with its square here: the half of the square is to be taken off"
            return Answer(found.base.node.place, text, proof), True
    return None


def _parts(found: Flow, weights: _Weights, rows: Array) -> tuple[Array, Array, Array]:
    """What the program takes for the density, the logarithm of the normal one of the latent, and of the stretch."""
    given = {id(found.data): rows}
    latent, told = weights.work(found.latent, given), weights.work(found.density, given)
    if latent.shape != rows.shape or told.shape != rows.shape[:1] or abs(latent).max() > LARGEST:
        raise Unknown
    return told, -0.5 * (latent**2).sum(axis=1), _stretch(weights, found.data, found.latent, rows)


def _offsets(told: Array, normal: Array, stretch: Array) -> tuple[float, float]:
    """By how much the program's density, or its negative, is apart from ours; infinite where that is no constant."""
    apart = [sign * told - normal - stretch for sign in (1, -1)]
    first, second = (float(a.mean()) if _constant(a) else math.inf for a in apart)
    return first, second


def _layers(run: Rehearsing, found: Flow) -> Iterator[tuple[Event, Node]]:
    """The layers on the way to the latent that give a logarithm beside what they make."""
    inside = {id(n) for n in ancestors(found.latent, through=lambda n: n.grad)}
    for event in run.tape:
        result = event.result
        if event.name != "forward" or not isinstance(result, tuple) or len(result) != 2 or not event.args:
            continue
        made, logarithm = result
        if not isinstance(made, Node) or not isinstance(logarithm, Node) or id(made) not in inside:
            continue
        if isinstance(event.args[0], Node) and _wide(event.args[0]) and _wide(made) and len(logarithm.shape.dims) == 1:
            yield event, logarithm


def _told_right(weights: _Weights, event: Event, logarithm: Node, rows: Array) -> str:
    """``right``, ``turned`` (the logarithm of the inverse) or ``wrong``; empty where that can't be worked out."""
    source, made = event.args[0], event.result[0] if isinstance(event.result, tuple) else None
    if not isinstance(source, Node) or not isinstance(made, Node):
        return ""
    try:
        stretch = _stretch(weights, source, made, rows)
        told = weights.work(logarithm, {id(source): rows})
    except Unknown:
        return ""
    if told.shape not in (stretch.shape, ()):
        return ""
    if abs(told - stretch).max() < CLOSE:
        return "right"
    return "turned" if abs(told + stretch).max() < CLOSE else "wrong"


# ---------------------------------------------------------------------- the sampler
def not_undone(run: Rehearsing) -> Iterator[Answer]:
    """What the sampler makes of a latent is not what the flow made that latent of."""
    if _density(run):
        return  # what is wrong on the way there may be all that is wrong
    with suppress(Unknown, ValueError, TypeError, IndexError, ArithmeticError):
        found = _flow(run)
        answer = _sampled(run, found, _Weights()) if found is not None else None
        if answer is not None:
            yield answer


def _sampled(run: Rehearsing, found: Flow, weights: _Weights) -> Answer | None:
    import numpy as np

    behind = list(ancestors(found.latent, through=lambda n: n.grad or n.op == "param"))
    params = {id(n): 1 << k for k, n in enumerate(n for n in behind if n.op == "param")}
    width = found.data.shape.dims[1]
    drawn = (n for n in run.nodes if n.serial > found.latent.serial and n.op in TAKES and not n.grad and _wide(n))
    start = next((n for n in drawn if n.shape.dims[1] == width), None)
    chain, last = _made_of(run, start, params) if start is not None else ([], None)
    if start is None or last is None:
        return None
    rows = _rows(found.data)
    given = {id(found.data): rows}
    latent = weights.work(found.latent, given)
    trial = _Trial({id(start): latent}, weights)
    ends: list[Array] = []
    for node in [n for n in chain if n.serial >= last.serial][:CANDIDATES]:
        with suppress(Unknown):
            ends.append(trial.work(node))
    ends = [e for e in ends if e.shape == rows.shape]
    known = bool(ends) and all(np.all(np.isfinite(e)) for e in ends) and np.abs(latent).max() < LARGEST
    if not known or any(np.abs(e - rows).max() < CLOSE for e in ends):
        return None
    branches = {id(c) for n in run.nodes if n.op == "either" for c in candidates(n) if isinstance(c, Node)}
    met = [v for n in behind if (n.grad or n is found.data) and (v := _worked(weights, n, given)) is not None]
    for node in chain:
        value = trial.known.get(id(node))
        if value is None or value.shape != rows.shape or node.op in RAW or id(node) in branches:
            continue
        if not any(m.shape == value.shape and np.abs(m - value).max() < CLOSE for m in met):
            place = _loop_of(node, found, params) or _outside(_half(node), {id(n.place[0]) for n in behind if n.place})
            text = "the sampler does not undo the flow here: given the latent of a row it makes another row of it"
            proof = tuple(p for p in (found.latent.place, found.event.place) if p is not None)
            return Answer(place, text, proof) if place is not None else None
    return None


def _made_of(run: Rehearsing, start: Node, params: dict[int, int]) -> tuple[list[Node], Node | None]:
    """What is computed from a draw with the weights of the flow, and the first that all of them stand behind."""
    bits, chain, last = {id(start): 0}, list[Node](), None
    every = sum(params.values())
    known: dict[int, int] = dict(params)
    for node in run.nodes:
        if node.op == "param":
            continue
        inner = [n for i in (*node.inputs, *node.options.values()) for n in parts(i)]
        found = 0
        for one in inner:
            found |= known.get(id(one), 0)
        known[id(node)] = known.get(id(node), 0) | found
        if node.grad or not any(id(n) in bits for n in inner):
            continue
        bits[id(node)] = known[id(node)]
        chain.append(node)
        if known[id(node)] == every and last is None and node.op not in RAW:
            last = node
    return chain, last


def _worked(weights: _Weights, node: Node, given: dict[int, Array]) -> Array | None:
    try:
        return weights.work(node, given)
    except Unknown:
        return None


def _loop_of(node: Node, found: Flow, params: dict[int, int]) -> Place | None:
    """The loop over the layers, where the first one that the sampler undoes is not the last of the flow."""
    mine = {id(n) for n in ancestors(node) if id(n) in params}
    order = [n for n in ancestors(found.latent, through=lambda n: n.grad or n.op == "param") if id(n) in params]
    latest = {id(n) for n in order[: max(1, len(mine))]}
    turn = node.turns[-1] if node.turns else None
    if mine & latest or turn is None or not isinstance(turn.node, ast.For):
        return None
    return turn.node.iter, turn.scope


def _half(node: Node) -> Node:
    """Of two halves that are put together again the one that was computed."""
    joined = next((c for c in candidates(node) if isinstance(c, Node)), node) if node.op == "either" else node
    halves = [n for n in parts(joined.inputs[:1]) if n.op in SUMS] if joined.op in JOINS else []
    own = joined.place[1] if joined.place is not None else None
    return halves[0] if len(halves) == 1 and halves[0].place is not None and halves[0].place[1] is own else node


def _outside(node: Node, shared: set[int]) -> Place | None:
    """Where the value is made; the call, where the flow goes through that statement too."""
    ways = [p for p in (node.place, *reversed(node.stack)) if p is not None]
    return next((p for p in ways if id(p[0]) not in shared), node.place)


__all__ = ["not_undone", "sign_wrong", "stretch_wrong"]
