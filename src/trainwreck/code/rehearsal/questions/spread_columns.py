"""One number for each sample, and a column of one number for each sample: their sum is a table of all with all."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained

KEEPS = frozenset(["detach", "clone", "contiguous", "float", "to", "dropout", "mul", "neg", "relu", "sigmoid", "tanh"])
"""What leaves a column a column; a factor is one number."""
FLAT = frozenset(["sum", "mean", "squeeze", "view", "reshape", "flatten", "cosine_similarity", "logsumexp", "norm"])
"""What gives one number for each sample."""


def all_with_all(run: Rehearsing) -> Iterator[Answer]:
    """``(u * v).sum(1) + bias(items)``: (N,) and (N, 1), the output of a layer of width one, become (N, N)."""
    for node in trained(run):
        if node.op not in ("add", "sub", "mul") or len(node.inputs) < 2 or node.place is None:
            continue
        for flat, column in (node.inputs[:2], node.inputs[1::-1]):
            if _flat(flat) and _column(column) and _one_size(flat, column):
                text = "one number per sample meets a column of one number per sample: each sample meets all others"
                yield Answer(node.place, text)
                return


def _flat(value: Value) -> bool:
    """A vector of numbers that were summed up sample by sample, alone or added to others of the kind."""
    for _ in range(6):
        if not isinstance(value, Node) or not value.grad or value.shape.open or len(value.shape.dims) != 1:
            return False
        if value.op in FLAT:
            return True
        inner = [i for i in value.inputs[:2] if isinstance(i, Node) and i.grad and i.shape.dims]
        if value.op not in ("add", "sub", "mul", "neg", "sigmoid") or not inner:
            return False
        value = inner[0]
    return False


def _column(value: Value) -> bool:
    """What a table with one column or a layer with one output gives, as it is."""
    for _ in range(6):
        if not isinstance(value, Node) or not value.grad or value.shape.open or len(value.shape.dims) != 2:
            return False
        if value.shape.dims[1] != 1:
            return False
        if value.op in ("embedding", "linear"):
            return value.owner is not None
        if value.op not in KEEPS or not value.inputs:
            return False
        value = value.inputs[0]
    return False


def _one_size(flat: Value, column: Value) -> bool:
    """True unless the numbers of samples are known to differ, or are one."""
    if not isinstance(flat, Node) or not isinstance(column, Node):
        return False
    one, other = flat.shape.dims[0], column.shape.dims[0]
    return 1 not in (one, other) and (None in (one, other) or one == other)


__all__ = ["all_with_all"]
