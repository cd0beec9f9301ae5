"""Products, joins and constructors of tensors: what they give, and the sizes that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainwreck.code.calls import Call
from trainwreck.code.shapes.asked import Asked
from trainwreck.code.shapes.domain import ANY, MANY, UNKNOWN, Dim, Items, Shape, Value, size, uneven

CREATES = frozenset(
    [
        "zeros",
        "ones",
        "empty",
        "rand",
        "randn",
        "full",
        "random",
        "standard_normal",
        "normal",
        "uniform",
        "randint",
        "integers",
    ]
)


def multiplied(asked: Asked, other: Shape) -> Value:
    """A matrix product."""
    one = asked.shape
    if not one.dims or not other.dims:
        return ANY
    if len(other.dims) == 1 and not other.open:
        inner, rest = other.dims[0], Shape(one.dims[:-1], one.open, one.by)
    elif len(other.dims) >= 2:
        inner = other.dims[-2]
        rest = Shape((*one.dims[:-1], other.dims[-1]), one.open, one.by)
    else:
        return ANY
    if inner is not None and one.dims[-1] is not None and inner != one.dims[-1]:
        asked.clash("product", f"{one} can't be multiplied with {other}: {one.dims[-1]} against {inner}")
        return ANY
    if not one.open and len(one.dims) == 1:
        return Shape((other.dims[-1],), False, one.by) if not other.open and len(other.dims) == 2 else ANY
    if not other.open and len(other.dims) > len(one.dims):
        return ANY if one.open else Shape((*other.dims[:-2], one.dims[-2], other.dims[-1]), False, one.by)
    return rest


def stacked(parts: Sequence[Value], along: Value, asked: Asked, *, new: bool) -> Value:
    """``cat`` and ``stack`` of tensors along one axis."""
    shapes = [p for p in parts if isinstance(p, Shape)]
    at = size(along)
    if len(shapes) != len(parts) or not shapes or at is None:
        return ANY
    first = shapes[0]
    if new:
        place = at if at >= 0 else len(first.dims) + at + 1
        if any(s.open or len(s.dims) != len(first.dims) for s in shapes) or not 0 <= place <= len(first.dims):
            return ANY
        known = tuple(
            first.dims[i] if all(s.dims[i] == first.dims[i] for s in shapes) else None for i in range(len(first.dims))
        )
        return Shape((*known[:place], len(shapes), *known[place:]), False, asked.call)
    if at >= 0 and any(s.open for s in shapes):
        return ANY
    if any(s.open for s in shapes):
        count = min(len(s.dims) for s in shapes)
        if -at > count:
            return ANY
        shapes = [Shape(s.dims[len(s.dims) - count :], True, s.by) for s in shapes]
    elif len({len(s.dims) for s in shapes}) > 1:
        axes = " and ".join(dict.fromkeys(str(s) for s in shapes))
        asked.clash("join", f"tensors with different numbers of axes are joined: {axes}")
        return ANY
    count = len(shapes[0].dims)
    place = at % count if count else 0
    if not -count <= at < count:
        return ANY
    dims: list[Dim] = []
    for axis in range(count):
        column = [s.dims[axis] for s in shapes]
        if axis == place:
            dims.append(None if None in column else sum(c or 0 for c in column))
            continue
        sizes = {c for c in column if c is not None}
        if len(sizes) > 1:
            shown = " and ".join(dict.fromkeys(str(s) for s in shapes))
            near = len(shapes) == 2 and axis >= 2 and uneven(shapes[0], shapes[1])
            asked.clash("divide" if near else "join", f"{shown} are joined along axis {at}, and differ along another")
            return ANY
        dims.append(sizes.pop() if sizes else None)
    return Shape(tuple(dims), shapes[0].open, asked.call)


def created(name: str, args: Sequence[Value], options: Mapping[str, Value], call: Call, numpy: bool) -> Value:
    """Tensors and arrays made from sizes (``torch.zeros(2, 3)``, ``rng.normal(size=(2, 3))``)."""
    given: Sequence[Value] = args
    if name == "eye":
        n = size(args[0]) if args else None
        return Shape((n, size(args[1]) if len(args) > 1 else n), False, call)
    if name in ("arange", "linspace", "randperm"):
        whole = len(args) == 1 and name != "linspace"
        return Shape(
            (size(args[0]) if whole else size(args[2]) if name == "linspace" and len(args) > 2 else None,), False, call
        )
    if name in ("normal", "uniform", "integers", "randint") or "size" in options or "shape" in options:
        sizes = options.get("size", options.get("shape", args[2] if len(args) > 2 else UNKNOWN))
        if name == "randint" and not numpy and "size" not in options:
            sizes = args[-1] if args and isinstance(args[-1], tuple) else UNKNOWN
        given = [sizes]
    elif name == "full" or (numpy and name in ("zeros", "ones", "empty", "random", "standard_normal")):
        given = args[:1]
    if len(given) == 1 and isinstance(given[0], tuple) and not given[0]:
        return Shape((), False, call)  # ``torch.zeros(())``: a number
    if len(given) == 1 and isinstance(given[0], tuple | Items):
        given = given[0].items if isinstance(given[0], Items) else given[0]
    elif len(given) == 1 and given[0] is UNKNOWN:
        return ANY
    if not given or any(isinstance(g, Shape) or g is MANY for g in given):
        return ANY
    return Shape(tuple(size(g) for g in given), False, call)
