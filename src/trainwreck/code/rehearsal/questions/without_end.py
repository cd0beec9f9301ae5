"""Objectives that fall without end whatever the data are: tried with outputs of a network that grow and grow.

A loss has a least value, or at least some data for which larger outputs cost more. One that falls in each of many
random draws of data and outputs, and the faster the larger they are, has the wrong sign, whatever it is made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors, carries
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.densities import LAYERS
from trainwreck.code.rehearsal.questions.pulling import Part, summands
from trainwreck.code.rehearsal.questions.roles import backwards, unknown
from trainwreck.code.rehearsal.trial.bench import Bench, Unknown

DRAWS = 10
"""With fewer, a difference of two scores, whose sign is that of the draw, falls in all of them now and then."""
GROWTH = (1.0, 8.0, 64.0)
FASTER = 3.0
"""From 8 to 64 times the outputs the value grows by this factor at least: 8 were linear."""
MOST_NODES = 400
ROWS, LONG, MOST = 6, 4, 20_000
"""Samples, elements along any other axis whose size is not known, and elements in all of one array."""
FEW = 6
LOGARITHMS = frozenset(["log_softmax", "logsigmoid", "cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"])
DISTANCES = frozenset(["cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
"""Losses of a library that are never below zero (a binary one may be, with labels that are no shares)."""
BINARY = frozenset(["binary_cross_entropy_with_logits", "binary_cross_entropy"])
TURNED = frozenset("to float double long type_as cuda view reshape unsqueeze squeeze flatten".split())
TRUTHS = frozenset("invert logical_not and or eq ne lt le gt ge bool isnan isfinite".split())
CUT = frozenset(["detach", "detach_", "grad", "apply"])


def falls_without_end(run: Rehearsing) -> Iterator[Answer]:
    """Minimising this makes the outputs of the network grow without end, for any data."""
    only = _only_objective(run)
    if only is None:
        return
    loss, last = only
    whole = Part(loss, 1, None)
    parts = [p for p in summands(loss, level=len(loss.stack)) if p.node is not loss and _log_share(p.node)]
    for part in (*(parts if len(parts) < FEW else ()), whole):
        if _known(part, DISTANCES):
            continue
        found = _leaves(part.node)
        if found is None:
            continue
        masked = (None, 0, 1) if any(n.op in TRUTHS for n in found[1]) else (None,)
        falls = any(_always(part, *found, mask) for mask in masked)
        if falls:
            text = "this falls without end as the outputs grow, whatever the data are: it has the wrong sign"
            yield Answer(part.node.place or last, text, (last,))
            return


def _known(part: Part, losses: frozenset[str]) -> bool:
    """True for a loss of the library as it is: nothing needs to be worked out, which takes longer than all the rest."""
    node = part.node
    while node.op in ("mean", "sum", "div") and node.inputs and isinstance(node.inputs[0], Node):
        if any(not isinstance(i, int | tuple) or i == 0 for i in node.inputs[1:]):
            return False
        node = node.inputs[0]
    return part.sign > 0 and (node.op in losses or (node.op in BINARY and _as_given(node)))


def _as_given(loss: Node) -> bool:
    """True where the labels of a loss are those of the batch, in another shape or type at most."""
    target = loss.inputs[1] if len(loss.inputs) > 1 else None
    while isinstance(target, Node) and target.op in TURNED and target.inputs:
        target = target.inputs[0]
    return isinstance(target, Node) and target.op == "batch"


def _only_objective(run: Rehearsing) -> tuple[Node, Place] | None:
    """What the only optimizer's only ``backward`` runs from, and where; None where there are several."""
    events = backwards(run)
    subjects = [e.subject for e in events if isinstance(e.subject, Node)]
    places = {id(e.place[0]) for e in events if e.place is not None}
    last = events[-1].place if events else None
    alone = len([o for o in run.objects if is_optimizer(o)]) == len(places) == 1
    return (subjects[-1], last) if alone and subjects and last is not None else None


def labels_make_no_difference(run: Rehearsing) -> Iterator[Answer]:
    """A likelihood of labels that costs nothing, or less, where all outputs are one and the same large number, whatever
    the labels are: one of its two sides is missing, or pulls the wrong way."""
    only = _only_objective(run)
    if only is None:
        return
    loss, last = only
    for part in (*summands(loss, level=len(loss.stack)),):
        if _known(part, frozenset(["cross_entropy"])) or any(
            n.op == "nll_loss" for n in ancestors(part.node, through=lambda n: n.op != "nll_loss" and n.grad)
        ):
            continue  # it is given no logarithms: asked for by itself
        found = _leaves(part.node) if part.sign > 0 and _log_share(part.node) else None
        if found is None or len(found[0]) != 1 or found[0][0].op == "param":
            continue
        if any(_nothing(part, *found, size) for size in (HUGE, -HUGE)):
            text = "the same large output for everything costs nothing here, whatever the labels are"
            yield Answer(part.node.place or last, text, (last,))
            return


HUGE = 30.0
"""An output at which a sigmoid is 0 or 1 to thirteen digits."""


def _nothing(part: Part, outputs: list[Node], data: list[Node], size: float) -> bool:
    import numpy as np

    try:
        for draw in range(DRAWS):
            values = []
            for constant in (True, False):
                random = np.random.default_rng(draw)
                first = random.standard_normal(_size(outputs[0]))
                bench = _bench(data, draw, None)
                bench.set(outputs[0], np.full_like(first, size) if constant else first)
                values.append(bench.number(part.node))
            if not all(map(math.isfinite, values)):
                return False
            nothing = values[1] > 0 and abs(values[0]) <= CLEAR * values[1]
            if not nothing and values[0] > -LOW * abs(size):  # else it is below what any likelihood costs
                return False
    except Unknown:
        return False
    return True


CLEAR, LOW = 1e-6, 0.1


def _log_share(term: Node) -> bool:
    """True for a likelihood of data: of one of several terms it is sure that it is to grow. Distances that drive
    others apart may fall without end beside something that holds them."""
    inner = list(ancestors(term, through=lambda n: n.grad and n.op not in LAYERS))
    return any(n.op in LOGARITHMS for n in inner) and any(not n.grad and n.shape.dims for n in inner)


def _leaves(loss: Node) -> tuple[list[Node], list[Node]] | None:
    """The outputs of layers (and weights) that the objective is computed from, and the data; None where some way is
    not understood, or gradients are meant to go another way."""
    outputs: list[Node] = []
    data: list[Node] = []
    for count, node in enumerate(ancestors(loss, through=lambda n: n.grad and n.op not in LAYERS and n.op != "param")):
        if count > MOST_NODES or (node.grad and (unknown(node) or node.op in CUT)):
            return None
        if node.grad or node.op == "param":
            outputs += [node] if node.op in LAYERS or node.op == "param" else []
        elif any(n.op == "param" for n in ancestors(node, through=carries)):
            return None  # what a network told without a gradient: advantages, targets, a teacher
        else:
            data.append(node)
    return (outputs, data) if outputs else None


def _always(part: Part, outputs: list[Node], data: list[Node], mask: int | None) -> bool:
    """``mask``: what all masks hold, where it is not drawn."""
    try:
        return all(_falls(part, outputs, data, draw, mask) for draw in range(DRAWS))
    except Unknown:
        return False


def _falls(part: Part, outputs: list[Node], data: list[Node], draw: int, mask: int | None) -> bool:
    import numpy as np

    random = np.random.default_rng(draw)
    first = {id(o): random.standard_normal(_size(o)) for o in outputs}
    values = []
    for times in GROWTH:
        bench = _bench(data, draw, mask)
        for output in outputs:
            bench.set(output, times * first[id(output)])
        values.append(part.sign * bench.number(part.node))
    if not all(map(math.isfinite, values)):
        raise Unknown
    return values[2] < values[1] < values[0] and values[2] < FASTER * values[1] < 0


def _bench(data: list[Node], draw: int, mask: int | None) -> Bench:
    """Zeros and ones in the place of the data, the same for the same draw."""
    import numpy as np

    random = np.random.default_rng(draw + DRAWS)
    leaves = {id(leaf): leaf for node in data for leaf in _drawn(node)}
    bits = {key: random.integers(0, 2, _size(leaf)) for key, leaf in leaves.items()}
    if mask is not None:
        bits |= {id(n): np.full(_size(n), mask) for n in data if n.op in TRUTHS}
        leaves |= {id(n): n for n in data if n.op in TRUTHS}
    bench = Bench(leaf=lambda n: np.asarray(1) if n.op in ("counter", "index") else None, seed=draw)
    for key, leaf in leaves.items():
        bench.set(leaf, bits[key])
    return bench


def _drawn(node: Node) -> list[Node]:
    """What zeros and ones are drawn for in the place of data: the batch, else the value itself."""
    batches = [n for n in ancestors(node) if n.op == "batch" and not n.shape.open and n.shape.dims]
    return batches or ([node] if not node.shape.open and node.shape.dims else [])


def _size(node: Node) -> tuple[int, ...]:
    if node.shape.open:
        raise Unknown
    made = tuple(d if d is not None else ROWS if at == 0 else LONG for at, d in enumerate(node.shape.dims))
    if math.prod(made) > MOST:
        raise Unknown
    return made


__all__ = ["falls_without_end", "labels_make_no_difference"]
