"""Tensors: what they say of their sizes."""

from __future__ import annotations

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import NUMBERING, UNKNOWN, Items, Node, Table, Value
from trainwreck.code.rehearsal.library import NOTHING, function, method
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


@method("tensor", "map", "replace")
def _mapped(run: Rehearsing, asked: Asked) -> Value:
    """A column of pandas whose values are looked up in a dict that numbers them."""
    table = asked.args[0] if asked.args else None
    if not isinstance(table, Table) or table.numbered is None:
        return NOTHING
    looked_up = run.node("lookup", (asked.receiver,), asked.place, grad=False)
    looked_up.shape = asked.receiver.shape
    looked_up.attributes[NUMBERING] = table
    return looked_up


@function(*(f"torch._foreach_{n}_" for n in "add sub mul div lerp copy zero neg addcmul addcdiv pow sqrt".split()))
def _each(run: Rehearsing, asked: Asked) -> Value:
    """``torch._foreach_mul_(list, other)``: the method on each element, with the others' element of that number."""
    columns = [run.elements(a, asked.place, asked.frame)[0] if isinstance(a, Items | tuple) else a for a in asked.args]
    first = columns[0] if columns else None
    name = asked.name.removeprefix("_foreach_")
    for number, tensor in enumerate(first if isinstance(first, list) else []):
        args = [(c[min(number, len(c) - 1)] if c else UNKNOWN) if isinstance(c, list) else c for c in columns[1:]]
        run.library_method(Asked(name, name, tensor, args, asked.options, asked.place, asked.frame))
    return None
