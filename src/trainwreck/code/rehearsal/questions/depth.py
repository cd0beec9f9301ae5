"""Deep stacks: how much of a gradient gets through saturating layers."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import made_at, trained

PASSES = {"sigmoid": 0.144, "hardsigmoid": 0.1, "tanh": 0.577, "softsign": 0.577, "hardtanh": 0.577}
"""Share of a gradient that gets through a layer of torch's default weights and this function, at best.

The weights of ``Linear`` and ``Conv`` start uniform within 1 / sqrt(fan in): a standard deviation of
1 / sqrt(3 fan in), so each layer scales a gradient by about 1 / sqrt(3) = 0.577 (He et al., arXiv:1502.01852, equation
14). The slope of a sigmoid is at most 1/4, of a hard sigmoid 1/6, of a tanh 1."""
LOST = 1e-3
"""Share of the gradient that reaches the first layer below which it trains some thousand times slower than the last."""
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
        share, count, first = _stack(node)
        key = id(first.owner) if first.owner is not None else id(first)
        if count > 1 and (key not in longest or share < longest[key][0]):
            longest[key] = (share, count, first, node)
    for share, count, first, last in longest.values():
        place, end = made_at(run, first), made_at(run, last)
        if share < LOST and place is not None:
            text = f"{count} layers with {last.op} follow one another: {share:.0e} of the gradient gets to the first"
            yield Answer(place, text, (end,) if end is not None else ())


def _stack(node: Node) -> tuple[float, int, Node]:
    """Share of the gradient that gets through the stack that ends at ``node``, its layers, and its first function."""
    share, count, first = 1.0, 0, node
    at: Node | None = node
    while at is not None and at.op in PASSES:
        layer = _behind(at)
        if layer is None or layer.op not in LAYERS or _initialised(layer):
            break
        share, count, first = share * PASSES[at.op], count + 1, at
        at = _behind(layer)
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
