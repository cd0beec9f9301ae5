"""A loss that is the sum over a batch already, and is taken times the size of the batch before it is added up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer

SAME = frozenset(["item", "float", "detach", "cpu", "numpy", "double", "tolist"])
LENGTHS = frozenset(["len", "size", "numel"])


def times_size(run: Rehearsing) -> Iterator[Answer]:
    """``total += mse_loss(out, y, reduction="sum").item() * len(y)``."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op != "mul" or len(node.inputs) != 2 or node.grad or node.place is None or id(node.place[0]) in told:
            continue
        for one, other in (node.inputs, node.inputs[::-1]):
            if _summed(one) and (_length(other) if isinstance(other, Node) else _asked(node)):
                told.add(id(node.place[0]))
                yield Answer(
                    node.place,
                    "this loss is a sum over the batch, and is taken times its size once more",
                    severity="warning",
                )
                break


def _summed(value: Value) -> bool:
    for _ in range(6):
        if not isinstance(value, Node):
            return False
        if value.op.endswith(("_loss", "entropy", "_logits")):
            holder = value.owner.options.get("reduction") if value.owner is not None else None
            return "sum" in (value.options.get("reduction"), holder)
        if value.op not in SAME or not value.inputs:
            return False
        value = value.inputs[0]
    return False


def _asked(node: Node) -> bool:
    """True where the length is known, and the program asks for it: ``loss.item() * len(x)``."""
    at = node.place[0] if node.place is not None else None
    sides = (at.left, at.right) if isinstance(at, ast.BinOp) else (at.value,) if isinstance(at, ast.AugAssign) else ()
    return any(LENGTH.search(ast.unparse(s)) for s in sides)


LENGTH = pattern(r"^len\(|\.size\(0\)$|\.shape\[0\]$")


def _length(node: Node) -> bool:
    shape = node.inputs[0] if node.op == "getitem" and node.inputs else None
    of_shape = isinstance(shape, Node) and shape.op == "attribute" and shape.name == "shape"
    return node.op in LENGTHS or (of_shape and node.inputs[1:] == (0,))
