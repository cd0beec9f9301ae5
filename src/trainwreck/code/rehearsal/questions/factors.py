"""What the axes of a tensor stand for: each axis as a product of sizes that keep their identity through the program.

A size that is known is a number; any other is a symbol, the axis of the value that it was first seen at: ``x.size(2)``
and the last axis of ``x.permute(0, 1, 2)`` are the same. ``None`` where the axes can't be told."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.questions.contents import Axis, Content, in_memory
from trainwreck.code.rehearsal.questions.roles import RAW

Axes = tuple[Axis, ...]
Memo = dict[int, Axes | None]
MAX_DEPTH = 120
SAME = frozenset(
    """relu gelu tanh sigmoid softmax log_softmax silu leaky_relu elu softplus exp log neg abs sqrt square pow clamp
    clip dropout layer_norm batch_norm group_norm rms_norm instance_norm contiguous clone to float double half bfloat16
    cuda cpu detach data masked_fill normalize where nan_to_num long int type scale dropout1d dropout2d identity
    layernorm batchnorm1d batchnorm2d groupnorm cumsum sort requires_grad_ round floor prelu selu mish hardtanh
    from_numpy astype tensor as_tensor numpy setitem copy""".split()
)
ARITHMETIC = frozenset(["add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "gt", "lt", "ge", "le"])
REDUCTIONS = frozenset(["argmin", "argmax", "mean", "sum", "amax", "amin", "norm", "logsumexp", "std", "var", "max",
                        "min", "prod", "any", "all"])  # fmt: skip
CONVOLUTIONS = frozenset("conv1d conv2d conv3d convtranspose1d convtranspose2d convtranspose3d".split())
POOLS = frozenset(
    """maxpool1d maxpool2d avgpool1d avgpool2d max_pool1d max_pool2d avg_pool1d avg_pool2d upsample interpolate
    adaptiveavgpool1d adaptiveavgpool2d adaptive_avg_pool1d adaptive_avg_pool2d""".split()
)
RECURRENT = frozenset(["lstm", "gru", "rnn"])


def symbol(node: Node, at: int) -> Axis:
    """The axis of a value as a size of its own; the number where it is known."""
    known = node.shape.dim(at) if not node.shape.open else None
    if known is not None:
        return (known,) if known != 1 else ()
    return (("axis", id(node), at),)


def fresh(node: Node) -> Axes | None:
    """All axes as sizes of their own."""
    if node.shape.open:
        return None
    return tuple(symbol(node, at) for at in range(len(node.shape.dims)))


def axes(value: Value, memo: Memo, depth: int = 0) -> Axes | None:
    """The axes of a value."""
    if isinstance(value, int | float):
        return ()
    if not isinstance(value, Node) or depth > MAX_DEPTH:
        return None
    if id(value) not in memo:
        memo[id(value)] = None
        found = _computed(value, memo, depth + 1)
        count = len(value.shape.dims)
        if found is not None and not value.shape.open and len(found) != count:
            found = None
        memo[id(value)] = _as_known(value, found) if found is not None else fresh(value)
    return memo[id(value)]


def _as_known(node: Node, found: Axes) -> Axes:
    """Axes of which the size is not known where they come from, and is known where they are: the number."""
    if node.shape.open:
        return found
    return tuple(
        symbol(node, at) if isinstance(node.shape.dim(at), int) and any(not isinstance(f, int) for f in axis) else axis
        for at, axis in enumerate(found)
    )


def _computed(node: Node, memo: Memo, depth: int) -> Axes | None:
    op = node.op
    first = node.inputs[0] if node.inputs else None
    base = axes(first, memo, depth) if isinstance(first, Node) else None
    rest = arguments(node)
    if op == "param":
        return _weight(node)
    if op in SAME:
        return base
    if op in ARITHMETIC and len(node.inputs) > 1:
        return _broadcast(base if isinstance(first, Node) else axes(first, memo, depth),
                          axes(node.inputs[1], memo, depth))  # fmt: skip
    if op in CONVOLUTIONS or op in POOLS or op in RAW or op in RECURRENT:
        return _layer(node, first, base, memo, depth)
    if op == "embedding":
        width = node.shape.dims[-1] if node.shape.dims else None
        return (*base, (width,)) if base is not None and width else None
    if op == "matmul" and rest:
        return _product(base, axes(rest[0], memo, depth))
    if op == "cdist" and rest:
        other = axes(rest[0], memo, depth)
        return (*base[:-1], other[-2]) if base and other and len(other) >= 2 else None
    if op in ("cat", "concat", "concatenate", "stack"):
        return _joined(node, first, memo, depth)
    if op == "hidden" and isinstance(first, Node):
        return _last_state(first, memo, depth)
    if op == "part" and isinstance(first, Node):
        return _part(node, first, memo, depth)
    if base is None:
        return None
    if op in ("permute", "transpose", "swapaxes", "swapdims", "t", "T", "mT", "H"):
        return _permuted(op, base, rest)
    if op in ("view", "reshape"):
        wanted = target(node, memo)
        return wanted if wanted is not None else None
    if op == "flatten":
        return _flattened(base, rest)
    if op in REDUCTIONS:
        return _reduced(node, base)
    if op in ("unsqueeze", "squeeze") and rest and isinstance(rest[0], int):
        at = rest[0] % (len(base) + 1 if op == "unsqueeze" else max(len(base), 1))
        if op == "unsqueeze":
            return (*base[:at], (), *base[at:])
        return (*base[:at], *base[at + 1 :]) if at < len(base) and base[at] == () else None
    if op == "expand":
        return _expanded(base, rest, memo)
    if op == "getitem" and len(node.inputs) > 1:
        return _indexed(node, base, node.inputs[1])
    return None


def arguments(node: Node) -> tuple[Value, ...]:
    """What was given beside the value itself, without options."""
    given = node.inputs[1:]
    named = [v for k, v in node.options.items() if k != "inplace"]
    return given if not named else (*given[: max(0, len(given) - len(named))], *named)


def _broadcast(one: Axes | None, other: Axes | None) -> Axes | None:
    if one is None or other is None:
        return None
    long, short = (one, other) if len(one) >= len(other) else (other, one)
    padded = ((),) * (len(long) - len(short)) + tuple(short)
    return tuple(b if a == () or (isinstance(b[:1] and b[0], int) and b) else a
                 for a, b in zip(long, padded, strict=True))  # fmt: skip


def _expanded(base: Axes, rest: tuple[Value, ...], memo: Memo) -> Axes | None:
    """Axes of one element take the size that is asked for; the others stay."""
    asked = tuple(rest[0].items) if len(rest) == 1 and isinstance(rest[0], Items) else rest
    asked = asked[0] if len(asked) == 1 and isinstance(asked[0], tuple) else asked
    if len(asked) < len(base):
        return None
    padded = ((),) * (len(asked) - len(base)) + tuple(base)
    found = [axis if axis or (isinstance(want, int) and want == -1) else sizes(want, memo)
             for axis, want in zip(padded, asked, strict=True)]  # fmt: skip
    return tuple(f for f in found if f is not None) if None not in found else None


def _layer(node: Node, first: Value, base: Axes | None, memo: Memo, depth: int) -> Axes | None:
    """A layer keeps the axes of the samples; the others have sizes of their own."""
    own = fresh(node)
    if node.op in RECURRENT:
        if isinstance(first, Node) and base is None and (not first.shape.open or len(first.shape.dims) < 3):
            base = (lead(first, memo), (("axis", id(first), 1),), ())
        width = node.shape.dims[-1] if node.shape.dims else None
        return (*base[:2], (width,)) if base is not None and len(base) == 3 and width else None
    if own is None:
        return None
    if node.op in CONVOLUTIONS or node.op in POOLS:
        batch = base[0] if base is not None else lead(first, memo) if isinstance(first, Node) else None
        if batch is None or len(own) < 3:
            return own
        kept = base[1] if node.op in POOLS and base is not None and len(base) == len(own) else own[1]
        return (batch, kept, *own[2:])
    return (*base[:-1], own[-1]) if base is not None and len(base) == len(own) else own


def _weight(node: Node) -> Axes | None:
    """The weight of an embedding or a linear layer."""
    owner = node.owner
    names = {"Embedding": ("num_embeddings", "embedding_dim"), "Linear": ("out_features", "in_features")}
    if owner is None or owner.name not in names or not node.name.endswith("weight") or not node.shape.open:
        return fresh(node)
    found = [owner.get(name, names["Linear"][::-1].index(name) if owner.name == "Linear" else at)
             for at, name in enumerate(names[owner.name])]  # fmt: skip
    return tuple((v,) if isinstance(v, int) and v > 1 else (("axis", id(node), at),) for at, v in enumerate(found))


def lead(node: Node, memo: Memo) -> Axis:
    """The first axis of a value of which no more is known."""
    known = axes(node, memo)
    if known:
        return known[0]
    while (node.op in SAME or node.op in RAW or node.op == "embedding") and isinstance(node.inputs[0], Node):
        node = node.inputs[0]
    return symbol(node, 0)


def _product(one: Axes | None, other: Axes | None) -> Axes | None:
    if not one or not other or len(other) < 2 or len(one) < 2:
        return None
    outer = one[:-2] if len(one) >= len(other) else other[:-2]
    return (*outer, one[-2], other[-1])


def _joined(node: Node, first: Value, memo: Memo, depth: int) -> Axes | None:
    items = list(first) if isinstance(first, tuple) else list(first.items) if isinstance(first, Items) else []
    known = axes(items[0], memo, depth) if items else None
    rest = arguments(node)
    along = rest[0] if rest else 0
    if known is None or not isinstance(along, int):
        return None
    if node.op == "stack":
        at = along % (len(known) + 1)
        open_ = isinstance(first, Items) and first.more
        return (*known[:at], symbol(node, at) if open_ else (len(items),) if len(items) > 1 else (), *known[at:])
    at = along % max(len(known), 1)
    return (*known[:at], symbol(node, at) if not node.shape.open else (("axis", id(node), at),), *known[at + 1 :])


def _permuted(op: str, base: Axes, rest: tuple[Value, ...]) -> Axes | None:
    order: Value = rest[0] if len(rest) == 1 else rest
    order = tuple(order.items) if isinstance(order, Items) else order
    if op in ("t", "T", "H", "mT"):
        return (*base[:-2], base[-1], base[-2]) if len(base) >= 2 and (op == "mT" or len(base) == 2) else None
    if not isinstance(order, tuple) or not all(isinstance(o, int) for o in order):
        return None
    places = [o % len(base) for o in order] if base else []
    if op == "permute":
        return tuple(base[p] for p in places) if sorted(places) == list(range(len(base))) else None
    if len(places) == len(base) > 2:
        return tuple(base[p] for p in places)  # numpy's transpose
    if len(places) != 2:
        return None
    swapped = list(base)
    swapped[places[0]], swapped[places[1]] = base[places[1]], base[places[0]]
    return tuple(swapped)


def _flattened(base: Axes, rest: tuple[Value, ...]) -> Axes | None:
    start, end = (*rest, 0, -1)[:2] if len(rest) != 1 else (rest[0], -1)
    if not isinstance(start, int) or not isinstance(end, int) or not base:
        return None
    low, high = start % len(base), end % len(base)
    return (*base[:low], tuple(f for a in base[low : high + 1] for f in a), *base[high + 1 :])


def _reduced(node: Node, base: Axes) -> Axes | None:
    from trainwreck.code.rehearsal.questions.axes import along

    dim = along(node)
    if dim is None:
        return ()
    given = dim if isinstance(dim, tuple) else tuple(dim.items) if isinstance(dim, Items) else (dim,)
    if not base or not all(isinstance(d, int) for d in given):
        return None
    gone = {d % len(base) for d in given}
    if node.options.get("keepdim") is True or node.options.get("keepdims") is True:
        return tuple(() if n in gone else a for n, a in enumerate(base))
    return tuple(a for n, a in enumerate(base) if n not in gone)


def _indexed(node: Node, base: Axes, index: Value) -> Axes | None:
    """Slices and single numbers; an index by a tensor changes what an axis is."""
    items = index if isinstance(index, tuple) else (index,)
    found: list[Axis] = []
    at = 0
    for item in items:
        if item is None:
            found.append(())
        elif item is Ellipsis or at >= len(base):
            return None
        elif isinstance(item, Obj) and item.kind == "builtins.slice":
            whole = all(a is None for a in item.args)
            found.append(base[at] if whole else (("axis", id(node), at),))
            at += 1
        elif isinstance(item, int) and not isinstance(item, bool):
            at += 1
        else:
            return None
    return (*found, *base[at:])


def _part(node: Node, first: Node, memo: Memo, depth: int) -> Axes | None:
    """A piece of ``chunk`` or ``split``; the values or the places of a maximum; the output of a recurrent layer."""
    index = node.inputs[1] if len(node.inputs) > 1 else None
    if first.op in RECURRENT and index == 0:
        return axes(first, memo, depth)
    base = axes(first.inputs[0], memo, depth) if first.inputs and isinstance(first.inputs[0], Node) else None
    if base is None:
        return None
    if first.op in REDUCTIONS:
        return _reduced(first, base)
    if first.op == "unbind" and base:
        at = along if isinstance(along := (*arguments(first), 0)[0], int) else None
        return None if at is None else tuple(a for n, a in enumerate(base) if n != at % len(base))
    if first.op in ("chunk", "split", "tensor_split") and not node.shape.open and len(node.shape.dims) == len(base):
        rest = arguments(first)
        along = rest[1] if len(rest) > 1 else 0
        if isinstance(along, int):
            at = along % len(base)
            return (*base[:at], symbol(node, at), *base[at + 1 :])
    return None


def _last_state(layer: Node, memo: Memo, depth: int) -> Axes | None:
    """``h_n`` of a recurrent layer: (layers times directions, samples, width), whatever ``batch_first`` says."""
    out = axes(layer, memo, depth)
    if layer.op not in RECURRENT or layer.owner is None or out is None or len(out) != 3:
        return None
    layers, both = layer.owner.get("num_layers", 2, 1), layer.owner.get("bidirectional", 6, False)
    width = layer.owner.get("hidden_size", 1)
    if not isinstance(layers, int) or not isinstance(both, bool) or not isinstance(width, int):
        return None
    count = layers * (2 if both else 1)
    samples = out[0] if layer.owner.get("batch_first", 4, False) is True else out[1]
    return ((count,) if count > 1 else (), samples, (width,))


def sizes(value: Value, memo: Memo, depth: int = 0) -> Axis | None:
    """The factors of a size that the program computes."""
    if isinstance(value, bool) or depth > 12:
        return None
    if isinstance(value, int):
        return (value,) if value > 1 else () if value == 1 else None
    if not isinstance(value, Node):
        return None
    if value.op in ("size", "len") and value.inputs and isinstance(value.inputs[0], Node):
        at = value.inputs[1] if len(value.inputs) > 1 else 0
        return _size_of(value.inputs[0], at, memo)
    if value.op in ("getitem", "part") and value.inputs and isinstance(value.inputs[0], Node):
        shape = value.inputs[0]
        if shape.op == "attribute" and shape.name == "shape" and isinstance(shape.inputs[0], Node):
            return _size_of(shape.inputs[0], value.inputs[1] if len(value.inputs) > 1 else None, memo)
        return None
    if value.op in ("mul", "floor_divide", "div", "int") and value.inputs:
        parts = [sizes(i, memo, depth + 1) for i in value.inputs[:2]]
        if any(p is None for p in parts):
            return None
        one, other = parts[0] or (), (parts[1] if len(parts) > 1 else ()) or ()
        if value.op in ("mul", "int"):
            return (*one, *other)
        whole, part = Content.of(one), Content.of(other)
        return part.rest(whole) if part.divides(whole) else None
    return None


def _size_of(node: Node, at: Value, memo: Memo) -> Axis | None:
    if not isinstance(at, int) or isinstance(at, bool):
        return None
    known = axes(node, memo)
    if known is not None:
        return known[at] if -len(known) <= at < len(known) else None
    if at == 0:
        return lead(node, memo)
    return symbol(node, at) if at > 0 else None


def target(node: Node, memo: Memo) -> Axes | None:
    """The axes that a ``view`` or ``reshape`` asks for; ``-1``, or the one size that isn't known, is what is left."""
    rest = arguments(node)
    wanted = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple | Items) else rest
    listed = list(wanted.items) if isinstance(wanted, Items) else list(wanted)
    base = axes(node.inputs[0], memo)
    flat = tuple(f for a in base for f in a) if base is not None else ()
    found = [None if v == -1 and isinstance(v, int) else sizes(v, memo) for v in listed]
    missing = [n for n, f in enumerate(found) if f is None]
    if base is not None and not missing and Content.of(flat) != Content.of(tuple(f for a in found for f in a or ())):
        missing = [n for n, f in enumerate(found) if any(not isinstance(s, int) and s not in flat for s in f or ())]
    if len(missing) > 1 or (missing and base is None):
        return None
    if missing:
        part = Content.of(tuple(f for n, a in enumerate(found) for f in (a or ()) if n != missing[0]))
        whole = Content.of(flat)
        if not part.divides(whole):
            return None
        found[missing[0]] = part.rest(whole)
    return tuple(in_memory(f, flat) for f in found if f is not None)
