"""Objectives for which one and the same output for every sample is the best there is: worked out with a few rows.

All that learns gives one row for all samples; then the objective must be lower for something else: for samples that
belong together and others that don't, for aligned views, for outputs near and far. Where it never is, whatever the
data, the constant is what training finds (a contrastive loss without a term on others, a hinge that never acts).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import over_rows
from trainwreck.code.rehearsal.questions.paths import CREATES
from trainwreck.code.rehearsal.questions.pulling import CLEAR, MOST_NODES, output_of_layer
from trainwreck.code.rehearsal.questions.roles import backwards, unknown
from trainwreck.code.rehearsal.questions.scenes import ROWS, sizes
from trainwreck.code.rehearsal.questions.views import collapsing
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown

DRAWS = 5
MOST_OUTPUTS = 5
SPREADS = (0.1, 0.5, 1.0, 3.0)
"""How far apart the outputs of a draw lie; an embedding of length one has points up to 2 apart."""
CENTRING = frozenset("batch_norm instance_norm group_norm whiten var std cov corrcoef".split())
"""What keeps the outputs of a batch apart, or makes one row of all samples impossible."""


def constant_is_best(run: Rehearsing) -> Iterator[Answer]:
    """The objective compares outputs of one network, and nothing costs less than the same output for all."""
    if len([o for o in run.objects if is_optimizer(o)]) != 1:
        return
    told: dict[int, Node] = {}
    for event in backwards(run):
        if isinstance(event.subject, Node) and event.subject.place is not None:
            told.setdefault(id(event.subject.place[0]), event.subject)
    if len(told) != 1:
        return
    (objective,) = told.values()
    found = _outputs(objective)
    if found is None or next(collapsing(run), None) is not None or not _best(objective, *found):
        return
    place = _where(objective)
    text = "one and the same output for every sample costs the least here: nothing keeps different samples apart"
    if place is not None:
        yield Answer(place, text)


def _outputs(objective: Node) -> tuple[list[Node], list[Node]] | None:
    """The outputs that learn (of one layer, compared with each other), and all other leaves."""
    outputs: list[Node] = []
    leaves: list[Node] = []
    for count, node in enumerate(ancestors(objective, through=lambda n: n.grad and not output_of_layer(n))):
        if (
            count > MOST_NODES
            or node.op in CENTRING
            or over_rows(node)
            or (node.grad and unknown(node))
            or node.op == "param"
        ):
            return None
        if not node.grad:
            leaves.append(node)
        elif output_of_layer(node):
            outputs.append(node)
    owners, shapes = {id(o.owner) for o in outputs}, {o.shape.dims for o in outputs}
    alike = 2 <= len(outputs) <= MOST_OUTPUTS and len(owners) == len(shapes) == 1
    return (outputs, leaves) if alike else None


def _best(objective: Node, outputs: list[Node], leaves: list[Node]) -> bool:
    import numpy as np

    flat: list[float] = []
    try:
        shape = sizes(outputs[0])
        for draw in range(DRAWS):
            random = np.random.default_rng(draw)
            kept = _data(leaves, random)
            constants = [np.broadcast_to(c * random.standard_normal(shape[1]), shape) for c in (1.0, 1.0, 2.0)]
            flat += [_cost(objective, [c] * len(outputs), outputs, kept) for c in constants]
            others = [
                v for rows in _scenes(shape, len(outputs), random) for v in [_cost(objective, rows, outputs, kept)]
            ]
            near = CLEAR * max(1.0, abs(flat[0]))
            if max(flat) - min(flat) > near or min(others) < flat[0] - near or max(others) < flat[0] + near:
                return False
    except (Unknown, ValueError):
        return False
    return True


def _scenes(shape: tuple[int, int], count: int, random: Array) -> Iterator[list[Array]]:
    """Outputs of which some agree sample by sample, in each combination, and for some samples; near and far."""
    import numpy as np

    for spread in SPREADS:
        first = spread * random.standard_normal(shape)
        for alike in product((True, False), repeat=count - 1):
            yield [first, *(first if same else spread * random.standard_normal(shape) for same in alike)]
        mixed = np.where(random.random((shape[0], 1)) < 0.5, first, spread * random.standard_normal(shape))
        yield [first, *[mixed] * (count - 1)]


def _cost(objective: Node, rows: list[Array], outputs: list[Node], kept: dict[int, Array]) -> float:
    bench = Bench()
    bench.known.update(kept)
    for node, array in zip(outputs, rows, strict=True):
        bench.set(node, array)
    found = bench.number(objective)
    if not math.isfinite(found):
        raise Unknown
    return found


def _data(leaves: list[Node], random: Array) -> dict[int, Array]:
    """Random numbers for what does not learn: truths as 0 and 1, anything else between them."""
    found: dict[int, Array] = {}
    for node in leaves:
        if node.shape.open or len(node.shape.dims) > 2 or _counted(node):
            continue
        shape = tuple(ROWS if d is None else d for d in node.shape.dims)
        if math.prod(shape) > 100_000:
            raise Unknown
        found[id(node)] = (random.random(shape) < 0.5).astype(float)
    return found


def _counted(node: Node) -> bool:
    """True for numbers made of ``arange`` and the like, which the bench works out: they say what goes where."""
    return any(n.op in CREATES for n in ancestors(node, through=lambda n: n.op not in CREATES))


def _where(objective: Node) -> Place | None:
    """Where the terms are put together: the innermost reduction, with what it reduces."""
    at = objective
    while at.op in ("mean", "sum", "div", "mul", "neg") and at.inputs and isinstance(at.inputs[0], Node):
        inner = at.inputs[0]
        if inner.op not in ("mean", "sum", "add", "sub", "mul", "div", "neg") or inner.place is None:
            break
        at = inner
        if at.op in ("add", "sub"):
            break
    return at.place or objective.place
