"""Deep stacks: how much of a gradient gets through saturating layers."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import length, trips
from trainwreck.code.rehearsal.questions.initial import gains
from trainwreck.code.rehearsal.questions.roles import made_at, trained

PASSES = {"sigmoid": 0.144, "hardsigmoid": 0.1, "tanh": 0.577, "softsign": 0.577, "hardtanh": 0.577}
"""Share of a gradient that gets through a layer of torch's default weights and this function, at best.

The weights of ``Linear`` and ``Conv`` start uniform within 1 / sqrt(fan in): a standard deviation of
1 / sqrt(3 fan in), so each layer scales a gradient by about 1 / sqrt(3) = 0.577 (He et al., arXiv:1502.01852, equation
14). The slope of a sigmoid is at most 1/4, of a hard sigmoid 1/6, of a tanh 1."""
LOST = 1e-3
"""Share of the gradient that reaches the first layer below which it trains some thousand times slower than the last."""
WEAK = 0.5
"""A layer that leaves half of what goes in, or less; the usual weights leave all of it."""
DEEP = 5
GONE = 1e-4
"""So little of the signal is nothing beside the biases and the rounding of the layers above."""
ACTIVATIONS = frozenset("relu leaky_relu gelu silu elu selu celu tanh softsign relu6 prelu mish".split())
LAYERS = frozenset(["linear", "conv1d", "conv2d", "conv3d"])
KEEPS = frozenset(
    """dropout flatten view reshape squeeze unsqueeze permute transpose maxpool1d maxpool2d maxpool3d max_pool1d
    max_pool2d contiguous""".split()
)


def saturating_stack(run: Rehearsing) -> Iterator[Answer]:
    """Saturating functions one after the other, with default weights and nothing that lets the gradient past."""
    longest: dict[int, tuple[float, int, Node, Node]] = {}
    for node in trained(run):
        if node.op not in PASSES:
            continue
        share, count, first = _stack(run, node)
        key = id(first.owner) if first.owner is not None else id(first)
        if count > 1 and (key not in longest or share < longest[key][0]):
            longest[key] = (share, count, first, node)
    for share, count, first, last in longest.values():
        place, end = made_at(run, first), made_at(run, last)
        if share < LOST and place is not None:
            text = f"{count} layers with {last.op} follow one another: {share:.0e} of the gradient gets to the first"
            yield Answer(place, text, (end,) if end is not None else ())


def _stack(run: Rehearsing, node: Node) -> tuple[float, int, Node]:
    """Share of the gradient that gets through the stack that ends at ``node``, its layers, and the function that
    most of them have."""
    share, count, first, most = 1.0, 0, node, 0
    at: Node | None = node
    while at is not None and at.op in PASSES:
        layer = _behind(at)
        if layer is None or layer.op not in LAYERS or _initialised(layer):
            break
        below = _behind(layer)
        times = repeats(run, layer, _behind(below) if below is not None and below.op in PASSES else None)
        share, count = share * PASSES[at.op] ** times, count + times
        if times >= most:
            first, most = at, times
        at = below
    return share, count, first


def _behind(node: Node) -> Node | None:
    inner = node.inputs[0] if node.inputs else None
    while isinstance(inner, Node) and inner.op in KEEPS and inner.inputs:
        inner = inner.inputs[0]
    return inner if isinstance(inner, Node) else None


def _initialised(layer: Node) -> bool:
    """True where the program gives the weights values of its own, or they can't be told."""
    weights = [i for i in layer.inputs[1:] if isinstance(i, Node) and i.op == "param"]
    return not weights or any(w.writes for w in weights)


def repeats(run: Rehearsing, layer: Node, below: Node | None) -> int:
    """For how many layers of its kind this one stands: a long loop that builds them is gone through twice. ``below``:
    the layer whose output it takes, which must be of that kind too."""
    owner = layer.owner
    other = below.owner if below is not None else None
    if owner is None or other is None or other is owner or owner.place is None or other.place is None:
        return 1
    if other.place[0] is not owner.place[0]:
        return 1
    known = next((trips(run, t) for t in owner.turns if t.generic), None)
    if known is not None:
        return max(1, int(known) - 1)
    for holder in run.objects:
        given = holder.args[0] if holder.name == "ModuleList" and holder.args else None
        if isinstance(given, Items) and given.more and given.items and _holds(given.items[-1], owner):
            whole = length(run, given)
            return max(1, int(whole) - len(given.items) + 1) if whole is not None else 1
    return 1


def _holds(value: object, owner: Obj) -> bool:
    return value is owner or (isinstance(value, Obj) and any(v is owner for v in value.attributes.values()))


def faded(run: Rehearsing) -> Iterator[Answer]:
    """Layers with small weights one after the other: what goes in is gone before it comes out, and so is the slope."""
    known = {id(layer): (layer, gain, place) for layer, gain, place in gains(run) if 0 < gain < WEAK}
    for layer, gain, place in known.values():
        left, count, at = 1.0, 0, layer
        while id(at) in known:
            inner = at.inputs[0] if at.inputs else None
            while isinstance(inner, Node) and inner.op in KEEPS | ACTIVATIONS and inner.inputs:
                inner = inner.inputs[0]
            times = repeats(run, at, inner if isinstance(inner, Node) else None)
            left, count = left * known[id(at)][1] ** times, count + times
            if not isinstance(inner, Node):
                break
            at = inner
        if count >= DEEP and left < GONE:
            text = f"{count} layers that leave {gain:.2g} of what goes in follow one another: {left:.0e} comes through"
            yield Answer(place, text, (layer.place,) if layer.place is not None else ())
            return
