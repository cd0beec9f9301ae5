"""Steps in time that a network learns behind a softplus: does it begin with the steps that are drawn for it?

State space models draw the steps evenly over their logarithm (0.001 to 0.1, Gu et al. 2022) and write the inverse of
the softplus of them into a bias. Written without the inverse, or with a sign of it turned round, each step is about 0.7
or larger at first, and the state forgets within a few.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds, trained
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown

TIMES = 3.0
"""So many times larger than what was drawn, each step: the inverse is not the one, whatever it is rounded to."""
EACH = 2.0
"""The same of the largest of them, which a softplus changes least."""
LARGE = 1.0
"""Steps that are drawn above it are as good as one another behind a softplus."""
DRAWN = frozenset(["rand", "uniform", "uniform_", "linspace", "rand_like", "random", "empty_uniform"])
WRITES = frozenset(["copy_", "set_", "fill_"])


def begins_elsewhere(run: Rehearsing) -> Iterator[Answer]:
    """What is written into a bias in front of a softplus is made of drawn steps, and gives back none of them."""
    told: set[int] = set()
    for node in trained(run):
        if node.op != "softplus" or not node.inputs:
            continue
        for param in _biases(node.inputs[0]):
            known = _written(param)
            if known is None or id(known[1][0]) in told:
                continue
            value, place = known
            if _elsewhere(value):
                told.add(id(place[0]))
                text = (
                    "the steps that are drawn here are not those that the softplus gives back: it asks for its inverse"
                )
                yield Answer(place, text, tuple(p for p in (node.place,) if p is not None))


def _biases(value: Value) -> Iterator[Node]:
    """The parameters that are added right in front: the bias of a layer, or one of the program's own."""
    at = next(iter(parts(value)), None)
    for _ in range(8):
        if at is None or at.op == "param":
            break
        if at.op == "linear" and len(at.inputs) > 2 and isinstance(at.inputs[2], Node):
            yield at.inputs[2]
            return
        if at.op == "add":
            sides = [i for i in at.inputs[:2] if isinstance(i, Node)]
            yield from (s for s in sides if s.op == "param")
            return
        at = next(iter(parts(at.inputs[0])), None) if at.inputs and at.op in STRUCTURE else None
    if at is not None and at.op == "param":
        yield at


def _written(param: Node) -> tuple[Node, Place] | None:
    """What a parameter begins with, and where it is given that."""
    last = param.writes[-1] if param.writes else None
    if last is not None:
        value = last.args[0] if last.name in WRITES and last.args else None
        return (value, last.place) if isinstance(value, Node) and last.place is not None else None
    value = param.inputs[0] if param.inputs else None
    return (value, param.place) if isinstance(value, Node) and param.place is not None else None


def _elsewhere(value: Node) -> bool:
    steps = [n for n in ancestors(value) if n.op in ("exp", "logspace", "pow") and _of_draws(n)]
    if not steps:
        return False
    bench = Bench()
    bench.leaf = lambda node: _uniform(bench, node)
    try:
        begun = bench.np.logaddexp(0.0, bench.work(value))
        wanted: list[Array] = [bench.work(s) for s in steps]
    except Unknown:
        return False
    np = bench.np
    for step in wanted:
        if step.shape != begun.shape or not (step > 0).all() or np.median(abs(begun / step - 1)) < TIMES - 1:
            return False
    deepest = wanted[-1]
    return bool(deepest.max() < LARGE and (begun > EACH * deepest).all())


def _uniform(bench: Bench, node: Node) -> Array | None:
    ends, sizes = bounds(node), node.shape.dims
    whole = [s for s in sizes if isinstance(s, int)]
    if node.op != "uniform" or len(whole) != len(sizes) or not math.isfinite(ends.high - ends.low):
        return None
    return bench.random.uniform(ends.low, ends.high, whole)


def _of_draws(node: Node) -> bool:
    return any(n.op in DRAWN for n in ancestors(node.inputs))


__all__ = ["begins_elsewhere"]
