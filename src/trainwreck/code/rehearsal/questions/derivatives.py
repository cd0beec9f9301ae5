"""Custom autograd functions: is what ``backward`` returns the derivative of what ``forward`` computes?

Both run in the mind on symbols. Then they are worked out with small random arrays, and what ``backward`` says of a
small step in a random direction is compared with what the step does to ``forward``. Left alone is what is meant to
differ: functions that leave their input as it is (reversed or scaled gradients), that are flat (rounding, spikes),
estimators that are straight through where the forward is flat, backwards that are not linear in what they are given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from trainwreck.code.calls import written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Class, Event, Function, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.symmetric import surely_not
from trainwreck.code.rehearsal.state import Spent
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown
from trainwreck.core.row import Row

STEP = 1e-4
TRIALS = 8
APART = 0.02
"""Relative difference of two slopes; the rounding of a central difference with this step is about 1e-7."""
MOST = 0.6
"""Share of the trials that must disagree: at a kink a few do."""
RIGHT = 0.3
"""Share of the elements whose slope must be right where others are bounded on purpose."""
FLAT = frozenset(["round", "floor", "ceil", "trunc", "bernoulli", "argmax", "heaviside", "randint", "topk", "sort"])
STEPS = frozenset("sign sgn gt ge lt le".split())
"""Operations whose own derivative is zero wherever there is one."""
BOUNDS = frozenset("clamp clip clamp_min clamp_max minimum maximum min max nan_to_num hardtanh".split())
UNKNOWN_ROWS, UNKNOWN_SIZE = 5, 4
MOST_KEPT = 12  # values of a forward that are tried in the place of one that was saved
LARGE = 20_000  # elements of an array of which a few rows are enough


class Misshapen(Exception):
    """A gradient that does not have the shape of what it is the gradient of."""


class Layout(Row):
    """How large the arrays of the trials are."""

    alike: bool = False
    """An axis that is cut short is so wherever its size occurs."""
    square: int | None = None
    """Which of the arguments of unknown shape is a square matrix, with a row for each of another's."""


class Case(Row):
    """One custom function, worked through in the mind."""

    name: str
    given: list[Value]
    """What forward is given: symbols for tensors, numbers as they are."""
    output: Node
    upstream: Node
    returned: list[Value]
    saved: Event | None
    """Where tensors are kept for backward."""
    probe: Rehearsing
    ctx: Obj
    function: Function
    called: list[Value]
    """What the program calls it with."""
    layout: Layout = Layout()


def not_the_derivative(run: Rehearsing) -> Iterator[Answer]:
    told: set[int] = set()
    for node in run.nodes:
        cls = node.inputs[0] if node.op == "apply" and node.inputs else None
        if not isinstance(cls, Class) or id(cls.scope.node) in told:
            continue
        if not any(b.endswith("autograd.Function") or b == "Function" for b in cls.external()):
            continue
        told.add(id(cls.scope.node))
        with suppress(Spent, RecursionError, Unknown):
            case = worked_through(run, cls, node.inputs[1:])
            if case is not None:
                yield from _compared(case._replace(layout=_layout(case)))


def worked_through(run: Rehearsing, cls: Class, given: Sequence[Value]) -> Case | None:
    forward, backward, setup = (cls.find(n) for n in ("forward", "backward", "setup_context"))
    if not isinstance(forward, Function) or not isinstance(backward, Function):
        return None
    probe = Rehearsing(run.project)
    place: Place = (backward.node, backward.scope)
    ctx = Obj("ctx", attributes={"needs_input_grad": (True,) * len(given)})
    symbols = [_symbol(probe, v, place) if isinstance(v, Node) else v for v in given]
    if isinstance(setup, Function):
        output = probe.run(forward, list(symbols), {}, None)
        probe.run(setup, [ctx, tuple(symbols), output], {}, None)
    else:
        output = probe.run(forward, [ctx, *symbols], {}, None)
    saved = [e for e in probe.tape if e.name == "save_for_backward" and e.subject is ctx]
    if not isinstance(output, Node) or len(saved) > 1:
        return None
    ctx.attributes["saved_tensors"] = tuple(saved[0].args) if saved else ()
    upstream = probe.node("argument", (), place, name="grad", shape=output.shape)
    found = probe.run(backward, [ctx, upstream], {}, None)
    returned = list(found) if isinstance(found, tuple) else [found]
    if len(returned) != len(symbols):
        return None
    kept = saved[0] if saved else None
    return Case(cls.name, symbols, output, upstream, returned, kept, probe, ctx, backward, list(given))


def _layout(case: Case) -> Layout:
    """The first layout that forward can be worked out with. Raises ``Unknown`` where there is none."""
    import numpy as np

    open_ones = [n for n, s in enumerate(case.given) if isinstance(s, Node) and s.shape.open]
    squares = (s.shape for s in case.given if isinstance(s, Node) and not s.shape.open and len(s.shape.dims) == 2)
    whole = any(s.dims[0] == s.dims[1] and (s.total or 0) > LARGE for s in squares)
    for square in (None, *open_ones):
        for alike in (whole, not whole):
            layout = Layout(alike, square)
            with suppress(Unknown):
                _forward(case, _arrays(case._replace(layout=layout), np.random.default_rng(0)))
                return layout
    raise Unknown


def _symbol(probe: Rehearsing, value: Node, place: Place) -> Node:
    return probe.node("argument", (), place, name="input", shape=value.shape)


def _compared(case: Case) -> Iterator[Answer]:
    if any(n.op in FLAT or n.op == "either" for n in ancestors(case.output)):
        return
    for number, (symbol, slope) in enumerate(zip(case.given, case.returned, strict=True)):
        if not isinstance(symbol, Node) or not isinstance(slope, Node) or slope.op in ("either", "unknown"):
            continue
        if _helped(case, slope):
            continue
        try:
            pairs = _pairs(case, number)
        except Misshapen:
            if (
                slope.place is not None
                and case.layout == Layout()
                and not symbol.shape.open
                and not any(s.shape.open for s in case.given if isinstance(s, Node))
            ):
                text = "the gradient that is returned here has another shape than what it belongs to"
                yield Answer(slope.place, text)
            return
        if pairs is None:
            return
        if sum(abs(true) < 1e-7 for true, _ in pairs) > TRIALS / 2:
            continue  # flat on purpose: a surrogate
        if _agree(pairs) or slope.place is None or _estimated(case, symbol, slope):
            continue
        own = slope.place[1] is case.function.scope and slope is not case.upstream
        place = slope.place if own else _returned(case.function)
        proof = (case.output.place,) if case.output.place is not None else ()
        factors = [said / true for true, said in pairs if abs(true) > 1e-6]
        text = "what is returned here is not the derivative of what forward computes"
        if len(factors) > 3 and max(factors) - min(factors) < 0.01 * abs(factors[0]):
            text = f"{text}: it is {factors[0]:.3g} times as large"
        elif (
            case.saved is not None
            and case.saved.place is not None
            and _renamed(case.saved.place, case.function)
            and _repaired(case, number)
        ):
            text = "another tensor is kept here than backward takes it for: its gradients are wrong"
            yield Answer(case.saved.place, text, (place, *proof))
            return
        yield Answer(place, text, proof)
        return


def _pairs(case: Case, number: int) -> list[tuple[float, float]] | None:
    import numpy as np

    symbol, slope = case.given[number], case.returned[number]
    pairs: list[tuple[float, float]] = []
    for trial in range(TRIALS):
        random = np.random.default_rng(100 * number + trial)
        arrays = _arrays(case, random)
        pair = _slopes(case, symbol, slope, arrays, random)
        if pair is None:
            return None
        pairs.append(pair)
    return pairs


def _estimated(case: Case, symbol: Node, slope: Node) -> bool:
    """True for what is meant to differ: the gradient goes straight through steps (``w.sign() * w.abs().mean()``), or
    the slope is right except where backward bounds it."""
    import numpy as np

    forward = list(ancestors(case.output))
    bounded = {id(n) for n in ancestors(slope) if n.op in BOUNDS} - {id(n) for n in forward}
    stepped = any(n.op in STEPS for n in forward)
    if not bounded and not stepped:
        return False
    random = np.random.default_rng(7)
    arrays = _arrays(case, random)
    at = arrays[id(symbol)]
    weight = random.standard_normal(_forward(case, arrays).shape)
    said = _backward(case, slope, arrays, weight)
    if said.shape != at.shape or weight.shape != at.shape:
        return False
    single = _elementwise(case, symbol, arrays)
    if (
        stepped
        and (not single or _statistics(forward))
        and (np.isclose(said, weight) | (said == 0)).all()
        and said.any()
    ):
        return True
    if not bounded or not single:
        return False
    ends = [_forward(case, {**arrays, id(symbol): at + s * STEP}) for s in (-1, 1)]
    right = np.isclose(said, weight * (ends[1] - ends[0]) / (2 * STEP), rtol=APART, atol=1e-5)
    return bool(right.mean() > RIGHT)


def _helped(case: Case, slope: Node) -> bool:
    """True where the slope uses something that is given for backward alone (a transpose): the call tells what it is."""
    used, needed = ({id(n) for n in ancestors(v)} for v in (slope, case.output))
    return any(isinstance(s, Node) and id(s) in used and id(s) not in needed for s in case.given)


def _statistics(forward: list[Node]) -> bool:
    """True where a step is taken against a threshold that the whole tensor gives."""
    steps = [n for n in forward if n.op in STEPS]
    return any(n.op in ("mean", "std", "sum", "norm", "quantile") for step in steps for n in ancestors(step))


def _agree(pairs: list[tuple[float, float]]) -> bool:
    wrong = [p for p in pairs if abs(p[0] - p[1]) > APART * max(abs(p[0]), abs(p[1]), 1e-6)]
    return len(wrong) < MOST * TRIALS


def _returned(backward: Function) -> Place:
    """The last return of a function."""
    found = [n for n in ast.walk(backward.node) if isinstance(n, ast.Return)]
    return (found[-1] if found else backward.node, backward.scope)


def _renamed(saved: Place, backward: Function) -> bool:
    """True where backward gives a saved tensor another name than forward had for it."""
    given = [written(a) for a in getattr(saved[0], "args", [])]
    for node in ast.walk(backward.node):
        if isinstance(node, ast.Assign) and written(node.value).endswith("saved_tensors"):
            target = node.targets[0]
            taken = [written(e) for e in target.elts] if isinstance(target, ast.Tuple | ast.List) else []
            pairs = zip(taken, given, strict=False)
            return any(one != other and other.isidentifier() for one, other in pairs)
    return False


def _repaired(case: Case, number: int) -> bool:
    """True where the gradient is right with another value of the forward in the place of one that was saved."""
    assert case.saved is not None
    scope = case.output.place[1] if case.output.place is not None else None
    others = [n for n in ancestors(case.output) if n is case.output or any(n is s for s in case.given)
              or (n.place is not None and n.place[1] is scope)][:MOST_KEPT]  # fmt: skip
    for at, kept in enumerate(case.saved.args):
        for other in others:
            if other is kept or not isinstance(kept, Node):
                continue
            saved = (*case.saved.args[:at], other, *case.saved.args[at + 1 :])
            with suppress(Spent, RecursionError, Unknown, Misshapen):
                again = _turned(case, saved)
                pairs = _pairs(again, number) if again is not None else None
                if pairs is not None and _agree(pairs):
                    return True
    return False


def _turned(case: Case, saved: tuple[Value, ...]) -> Case | None:
    """The case with other tensors in what backward is given."""
    case.ctx.attributes["saved_tensors"] = saved
    found = case.probe.run(case.function, [case.ctx, case.upstream], {}, None)
    returned = list(found) if isinstance(found, tuple) else [found]
    return case._replace(returned=returned) if len(returned) == len(case.given) else None


def _arrays(case: Case, random: Any) -> dict[int, Array]:
    """An array for each tensor that forward is given."""
    symbols = [s for s in case.given if isinstance(s, Node)]
    sized = [s for s in symbols if not s.shape.open]
    cut: dict[int, int] = {}
    for symbol in sized if case.layout.alike else ():
        dims = symbol.shape.dims
        cut |= {d: UNKNOWN_ROWS for d in dims[:1] if d is not None and (symbol.shape.total or 0) > LARGE}
    arrays = {id(s): _array(sized[0] if s.shape.open and sized else s, random, cut) for s in symbols}
    square = case.given[case.layout.square] if case.layout.square is not None else None
    if isinstance(square, Node):
        rows = next((arrays[id(s)].shape[0] for s in symbols if s is not square and arrays[id(s)].ndim), UNKNOWN_ROWS)
        arrays[id(square)] = random.standard_normal((rows, rows))
    for symbol, value in zip(case.given, case.called, strict=True):
        if isinstance(symbol, Node) and _spreads(case, symbol) and not surely_not(value):
            found = arrays[id(symbol)]
            if found.ndim == 2 and found.shape[0] == found.shape[1]:
                arrays[id(symbol)] = found + found.T  # it may be symmetric: its transpose is then itself
    return arrays


def _spreads(case: Case, symbol: Node) -> bool:
    """True for a matrix that forward multiplies something with: the edges of a graph."""
    products = (n for n in ancestors(case.output) if n.op in ("mm", "matmul", "spmm", "smm"))
    return any(i is symbol for n in products for i in n.inputs)


def _array(symbol: Node, random: Any, cut: dict[int, int]) -> Array:
    if symbol.shape.open:
        return random.standard_normal((UNKNOWN_ROWS, UNKNOWN_SIZE))
    dims = [cut.get(d, d) if d is not None else UNKNOWN_ROWS + at for at, d in enumerate(symbol.shape.dims)]
    if not all(dims) or len(dims) > 4:
        raise Unknown
    size = 1
    for d in dims:
        size *= d
    if size > LARGE:
        dims = [min(d, UNKNOWN_ROWS) if at == 0 else d for at, d in enumerate(dims)]
    return random.standard_normal(dims)


def _slopes(case: Case, symbol: Node, slope: Node, arrays: dict[int, Array], random: Any) -> tuple[float, float] | None:
    """(what a small step does, what backward says of it), both weighted by a random gradient; None where the function
    is one of those that are left alone."""
    import numpy as np

    at = arrays[id(symbol)]
    direction = random.standard_normal(at.shape)
    low, middle, high = (_forward(case, {**arrays, id(symbol): at + s * direction}) for s in (-STEP, 0.0, STEP))
    if middle.shape == at.shape and np.allclose(middle, at):
        return None
    weight = random.standard_normal(middle.shape) if middle.ndim else np.asarray(1.0)
    change = (high - low) / (2 * STEP)
    said = _backward(case, slope, arrays, weight)
    if not np.isfinite(change).all() or not np.isfinite(said).all():
        raise Unknown
    twice = _backward(case, slope, arrays, -2 * weight) if middle.ndim else -2 * said
    if not np.allclose(twice, -2 * said, rtol=1e-4, atol=1e-7) and not np.allclose(twice, said):
        return None  # another function of the gradient, on purpose; one that does not use it at all is none
    if said.shape != at.shape:
        said = _summed(said, at.shape)
    if change.shape == at.shape and _elementwise(case, symbol, arrays):
        flat = np.abs(change) < 1e-9
        # where a tanh is saturated both are nearly nothing
        if flat.any() and (np.abs(said[flat]) > 1e-4 * np.abs(said).max()).any() and (~flat).any():
            same = np.allclose(said[~flat], (weight * change / direction)[~flat], rtol=APART, atol=1e-5)
            if same:
                return None  # straight through where the forward is flat
    return float((weight * change).sum()), float((said * direction).sum())


def _elementwise(case: Case, symbol: Node, arrays: dict[int, Array]) -> bool:
    """True where a change of one element of the input changes that element of the output alone."""
    import numpy as np

    at = arrays[id(symbol)]
    moved = at.copy()
    moved.flat[0] += 0.3
    change = np.abs(_forward(case, {**arrays, id(symbol): moved}) - _forward(case, arrays))
    return bool((change.flat[1:] < 1e-12).all())


def _summed(said: Array, shape: tuple[int, ...]) -> Array:
    """What autograd makes of a gradient that is broadcast."""
    while said.ndim > len(shape):
        said = said.sum(0)
    for axis, size in enumerate(shape):
        if said.ndim == len(shape) and size == 1 and said.shape[axis] != 1:
            said = said.sum(axis, keepdims=True)
    if said.shape != shape:
        raise Misshapen
    return said


def _forward(case: Case, arrays: dict[int, Array]) -> Array:
    return _bench(case, arrays).work(case.output).astype(float)


def _backward(case: Case, slope: Node, arrays: dict[int, Array], weight: Array) -> Array:
    bench = _bench(case, arrays)
    bench.set(case.upstream, weight)
    return bench.work(slope).astype(float)


def _bench(case: Case, arrays: dict[int, Array]) -> Bench:
    bench = Bench()
    for symbol in case.given:
        if isinstance(symbol, Node):
            bench.set(symbol, arrays[id(symbol)])
    return bench
