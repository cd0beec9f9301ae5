"""Tensors: what they say of their sizes."""

from __future__ import annotations

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.library import NOTHING, method
from trainwreck.code.rehearsal.rehearsing import Rehearsing


@method("tensor", "size")
def _size(run: Rehearsing, asked: Asked) -> Value:
    """One axis, or all."""
    base: Node = asked.receiver
    at = asked.get("dim", 0)
    if at is None and not asked.args:
        known = not base.shape.open
        return run.sizes(base, asked.place) if known else run.node("attribute", (base,), asked.place, name="shape")
    dim = base.shape.dim(at) if isinstance(at, int) else None
    return dim if dim is not None else NOTHING


@method("tensor", "dim", "ndimension")
def _dim(run: Rehearsing, asked: Asked) -> Value:
    base: Node = asked.receiver
    return NOTHING if base.shape.open else len(base.shape.dims)


@method("tensor", "numel", "nelement")
def _numel(run: Rehearsing, asked: Asked) -> Value:
    base: Node = asked.receiver
    total = base.shape.total
    return NOTHING if total is None else total
