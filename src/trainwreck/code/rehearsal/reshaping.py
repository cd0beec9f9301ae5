"""Shapes of parts: indices, elements of tuples, squeezed axes, norms, tensors made from nested lists."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from trainwreck.code.calls import Call
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.shapes.domain import ANY, Dim, Shape, broadcast, count_of, size, sliced

HERE: Call = Call(ast.Call(ast.Name("", ast.Load()), [], []), None)  # type: ignore[arg-type]
"""Stands for a place that is no call."""
MASKS = frozenset("eq ne lt le gt ge and or xor invert bool not isfinite isnan".split())
"""What gives a mask: used as an index, it takes all its axes away and adds one."""


def _masks(part: Node) -> bool:
    """True for a mask, also one that says for each row whether all or any of it holds."""
    first = part.inputs[0] if part.op in ("all", "any") and part.inputs else None
    return part.op in MASKS or (isinstance(first, Node) and first.op in MASKS)


def flat_number(node: Node) -> bool:
    """True for a single number that the program computes."""
    return not node.shape.open and not node.shape.dims


def literal(value: Value) -> Shape:
    """The shape of a tensor made from a nested list, a number or an array."""
    match value:
        case Node():
            return value.shape
        case bool() | int() | float():
            return Shape(())
        case tuple() | Items():
            items = list(value) if isinstance(value, tuple) else value.items
            count = value.length if isinstance(value, Items) and value.more else len(items)
            inner = literal(items[0]) if items else ANY
            return ANY if inner.open else Shape((count, *inner.dims))
    return ANY


def taken(inputs: Sequence[Value]) -> Shape:
    """The n-th of the values that another one is unpacked into."""
    value, place = inputs[0], inputs[1]
    if not isinstance(value, Node) or not isinstance(place, int):
        return ANY
    if value.shapes:
        return value.shapes[place] if place < len(value.shapes) else ANY
    if value.op == "attribute" and value.name == "shape":
        return Shape(())
    return Shape(value.shape.dims[1:], False, value.shape.by) if value.shape.dims and not value.shape.open else ANY


def squeezed(shape: Shape) -> Shape:
    """``squeeze()`` without an axis; a batch is taken to have more than one sample."""
    if shape.open or None in shape.dims[1:]:
        return ANY
    return Shape(tuple(d for d in shape.dims if d != 1), False, shape.by)


def normed(node: Node, shape: Shape, args: Sequence[Value]) -> Shape:
    """Norms and similarities along an axis, distances of all pairs, diagonals."""
    op = node.op
    other = args[0].shape if args and isinstance(args[0], Node) else None
    if op == "outer":
        flat = other is not None and not (shape.open or other.open) and len(shape.dims) == len(other.dims) == 1
        return Shape((*shape.dims, *other.dims)) if flat and other is not None else ANY
    if op == "cdist":
        return ANY if other is None else Shape((*shape.dims[:-1], other.dim(-2)), shape.open)
    if op == "diagonal":
        return Shape((None,)) if len(shape.dims) == 2 and not shape.open else ANY
    along = node.options.get("dim", node.options.get("axis"))
    if op in ("cosine_similarity", "pairwise_distance"):
        if other is None:
            return ANY
        shape, wrong = broadcast(shape, other)
        default = 1 if op == "cosine_similarity" else -1
        given = args[1] if len(args) > 1 and op == "cosine_similarity" else default
        along = given if along is None else along
        if wrong is not None:
            return ANY
    elif along is None:
        along = args[1] if len(args) > 1 else None
    kept = node.options.get("keepdim", node.options.get("keepdims", args[2] if len(args) > 2 else False))
    if along is None and kept is not False:
        return Shape((1,) * len(shape.dims), False, shape.by) if kept is True and not shape.open else ANY
    if along is None:
        return Shape((), False, shape.by)
    axes = list(along) if isinstance(along, tuple) else along.items if isinstance(along, Items) else [along]
    places = [shape.axis(a) if isinstance(a, int) else None for a in axes]
    if any(p is None for p in places) or not isinstance(kept, bool):
        return ANY
    dims = [1 if i in places else d for i, d in enumerate(shape.dims) if kept or i not in places]
    return Shape(tuple(dims), shape.open, shape.by)


def indexed(shape: Shape, index: Value) -> Value:
    """``x[i]``, ``x[:, 0]``, ``x[..., None]``, ``x[rows]``, ``x[mask]``."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if len(parts) == 1 and isinstance(parts[0], str):
        return ANY
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        wanted = sum(p is not None for p in parts) - 1
        if at != 0:
            if shape.open or wanted > len(shape.dims):
                return ANY
            filler = [Obj("builtins.slice", args=(None, None, None))] * (len(shape.dims) - wanted)
            parts = [*parts[:at], *filler, *parts[at + 1 :]]
        else:
            cut = len(shape.dims) - wanted
            if cut < 0:
                return ANY
            tail = _axes(shape.dims[cut:], parts[1:])
            return ANY if tail is None else Shape((*shape.dims[:cut], *tail), shape.open, shape.by)
    if shape.open:
        return ANY
    dims = _axes(shape.dims, parts)
    return ANY if dims is None else Shape(dims, False, shape.by)


def _axes(dims: tuple[Dim, ...], parts: Sequence[Value]) -> tuple[Dim, ...] | None:
    found: list[Dim] = []
    place, lookups, looked = 0, 0, 0
    for part, before in zip(parts, (None, *parts), strict=False):
        if part is None:
            found.append(1)
            continue
        if place >= len(dims):
            return None
        if isinstance(part, Obj) and part.kind == "builtins.slice":
            found.append(_sliced(dims[place], part.args))
        elif isinstance(part, Node):
            if part.shape.open:
                return None
            count = len(part.shape.dims)
            if _masks(part):
                found.append(None)
                place += max(count, 1)
                continue
            if count:
                lookups += 1
                if lookups == 1:
                    found += part.shape.dims if None not in part.shape.dims else [None] * count
                elif count != looked or not isinstance(before, Node) or not before.shape.dims:
                    return None  # else numbers for two axes that stand beside one another: one element for each pair
                looked = count
        elif isinstance(part, Items | tuple):
            lookups += 1
            if lookups > 1:
                return None
            found.append(None)
        elif not isinstance(part, int):
            return None
        place += 1
    return (*found, *dims[place:])


def _sliced(dim: Dim, ends: Sequence[Value]) -> Dim:
    start, stop, step = ends
    if dim is None and start is None and step is None and isinstance(stop, int) and stop == 1:
        return 1
    if isinstance(start, Node) and isinstance(stop, Node) and stop.op == "add" and start in stop.inputs[:1]:
        return stop.inputs[1] if isinstance(stop.inputs[1], int) else None
    return sliced(dim, ends)


def ruled(node: Node) -> Shape | tuple[Shape, ...]:
    """``mgrid[0:3, 0:4]`` and ``indices((3, 4))``: one array for each axis, over all of them; ``ogrid``: along one."""
    dims: list[Dim] = []
    sizes = node.inputs[0] if node.op == "indices" and node.inputs else None
    for index in node.inputs if sizes is None else sizes if isinstance(sizes, tuple) else ():
        match index.args if isinstance(index, Obj) else index:
            case (int() | None as start, int() as stop, int() | None as step):
                dims.append(count_of(range(start or 0, stop, step or 1)))
            case int() as size if sizes is not None and not isinstance(size, bool):
                dims.append(size)
            case _:
                dims.append(None)
    if node.op == "ogrid":
        return tuple(Shape(tuple(d if n == k else 1 for n, d in enumerate(dims))) for k in range(len(dims)))
    return Shape((len(dims), *dims)) if dims else ANY


def counted(node: Node) -> tuple[Dim]:
    """How many numbers an ``arange`` of written numbers has."""
    ends = [v for v in node.inputs[: len(node.inputs) - len(node.options)] if isinstance(v, int | float)]
    ends += [node.options[k] for k in ("start", "end", "stop", "step") if k in node.options]
    if not 1 <= len(ends) <= FULL_RANGE or not all(isinstance(v, int | float) for v in ends):
        return (None,)
    start, stop, step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:FULL_RANGE]
    count = math.ceil((stop - start) / step) if step and math.isfinite(stop - start) else None
    return (count if count is not None and 0 <= count < LONGEST else None,)


FULL_RANGE = 3
"""Start, stop and step."""
LONGEST = 10**9


def grid(node: Node) -> tuple[Shape, ...]:
    """The shapes of the parts of ``meshgrid``: an axis for each line; by ``"xy"`` the first two are swapped."""
    given = list(node.inputs[: len(node.inputs) - len(node.options)])
    if len(given) == 1 and isinstance(given[0], tuple | Items):
        given = list(given[0] if isinstance(given[0], tuple) else given[0].items)
    lines = [v.shape for v in given if isinstance(v, Node)]
    if len(lines) < len(given) or any(line.open or len(line.dims) != 1 for line in lines):
        return ()
    sizes = [line.dims[0] for line in lines]
    order = node.options.get("indexing", "xy" if node.full.startswith("numpy") else "ij")
    if order not in ("xy", "ij") or node.options.get("sparse"):
        return ()
    if order == "xy" and len(sizes) > 1:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    return tuple(Shape(tuple(sizes)) for _ in sizes)


def widened(node: Node) -> Shape:
    """``broadcast_to(x, shape)``: the sizes that are written out, or those of another array."""
    wanted = node.options.get("shape", node.options.get("size", node.inputs[1] if len(node.inputs) > 1 else None))
    if isinstance(wanted, Node) and wanted.op == "attribute" and wanted.name == "shape":
        return wanted.inputs[0].shape if isinstance(wanted.inputs[0], Node) else ANY
    if not isinstance(wanted, tuple):
        return ANY
    return Shape(tuple(s if isinstance(s, int) else None for s in wanted))


def taken_along(node: Node, given: Sequence[Value]) -> Shape:
    """``take_along_dim(x, index, axis)``: along the axis as many as the index has, else the wider of both."""
    index = node.options.get("indices", given[0] if given else None)
    axis = node.options.get("dim", node.options.get("axis", given[1] if len(given) > 1 else None))
    base, chosen = node.inputs[0], index.shape if isinstance(index, Node) else ANY
    count = len(chosen.dims)
    if not isinstance(base, Node) or base.shape.open or chosen.open or len(base.shape.dims) != count:
        return chosen
    if not isinstance(axis, int) or not -count <= axis < count:
        return chosen
    sizes = zip(chosen.dims, base.shape.dims, strict=True)
    return Shape(tuple(c if k == axis % count or c != 1 else b for k, (c, b) in enumerate(sizes)))


def selected(node: Node) -> Shape:
    """``np.select``: its conditions lie on each other."""
    tests = node.inputs[0] if node.inputs else None
    items = tests.items if isinstance(tests, Items) and not tests.more else tests if isinstance(tests, tuple) else ()
    result = Shape(())
    for item in items:
        result, wrong = broadcast(result, item.shape if isinstance(item, Node) else ANY)
        if wrong is not None:
            return ANY
    return result if items else ANY


def pieces(node: Node) -> int | None:
    """Into how many parts a tensor is surely taken apart (``x.unbind(1)``, ``x.chunk(2)``); None if that is open."""
    args = node.inputs[1 : max(1, len(node.inputs) - len(node.options))]
    whole = node.inputs[0].shape if node.inputs and isinstance(node.inputs[0], Node) else ANY
    if node.op == "unbind":
        along = node.options.get("dim", args[0] if args else 0)
        at = whole.axis(along) if isinstance(along, int) else None
        return whole.dims[at] if at is not None and at < len(whole.dims) else None
    if node.op in ("chunk", "split", "tensor_split"):
        count = next((v for k, v in node.options.items() if k != "dim"), args[0] if args else None)
        if isinstance(count, tuple | Items) and node.op == "split":
            return len(count) if isinstance(count, tuple) else None if count.more else len(count.items)
        return count if node.op == "chunk" and isinstance(count, int) else None
    return None


def cut_or_ordered(node: Node, shape: Shape) -> Shape | tuple[Shape, ...] | None:
    """Of ``numpy.split(x, places)`` and ``rng.permutation(n)``; None for anything else of these names."""
    args = node.inputs[1 : max(1, len(node.inputs) - len(node.options))]
    if node.op == "permutation":
        made = node.inputs and (isinstance(node.inputs[0], Obj) or _is_generator(node.inputs[0]))
        of = args[0] if made and args else node.inputs[0] if node.inputs and not made else None
        if isinstance(of, Node) and of.shape.dims and not of.shape.open:
            return of.shape
        one = isinstance(of, int) or (isinstance(of, Node) and flat_number(of))
        return Shape((size(of),)) if one else None
    if not node.full.startswith("numpy.") or shape.open or not shape.dims or node.options.get("axis", 0) != 0:
        return None
    places = args[0] if args else node.options.get("indices_or_sections")
    cuts = places.items if isinstance(places, Items) and not places.more else places
    rows = shape.dims[0]
    if isinstance(cuts, int) and cuts > 0:
        even = rows // cuts if rows is not None and rows % cuts == 0 else None
        return (Shape((even, *shape.dims[1:]), False, shape.by),) * cuts
    if not isinstance(cuts, list | tuple):
        return None
    known = [size(cut) for cut in cuts]
    ends = zip([0, *known], [*known, rows], strict=True)
    found = [None if a is None or b is None or not 0 <= a <= b else b - a for a, b in ends]
    return tuple(Shape((count, *shape.dims[1:]), False, shape.by) for count in found)


def _is_generator(value: Value) -> bool:
    return isinstance(value, Node) and value.op in ("default_rng", "RandomState")
