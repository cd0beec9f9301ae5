"""One batch of an evaluation: axes that reductions run over, batches of one sample, and where a summand is added up."""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal.domain import Node, Obj, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.library.data import LOADERS


def over_samples(node: Node) -> bool | None:
    """Whether a sum or mean goes over the first axis; None where that depends on the number of axes."""
    axis = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else None))
    if axis is None:
        return True
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(a, int) for a in axes):
        return None
    base = node.inputs[0]
    if any(a < 0 for a in axes) and isinstance(base, Node):
        if base.shape.open:
            return None if len(axes) == 1 and base.op not in ("softmax", "log_softmax") else 0 in axes
        return any(a % len(base.shape.dims) == 0 for a in axes if base.shape.dims)
    return 0 in axes


def single_samples(leaf: Node) -> bool:
    """True where a batch holds one sample (or nobody knows of a loader that says so)."""
    for node in ancestors(leaf):
        if node.op == "batch" and isinstance(node.owner, Obj) and node.owner.name in LOADERS:
            size = node.owner.get("batch_size", 1, 1)
            return size in (1, None)
    return False


def adds_at(leaf: Node) -> Place | None:
    """The statement of the loop that adds the summand up."""
    if leaf.place is None or not leaf.turns:
        return leaf.stack[-1] if leaf.stack else leaf.place
    loop = leaf.turns[-1].node
    inside = {id(n) for n in ast.walk(loop)}
    return next((p for p in (*leaf.stack, leaf.place) if id(p[0]) in inside), leaf.place)
