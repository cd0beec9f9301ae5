"""Which axis of a value tells the samples of a batch apart."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value, candidates
from trainwreck.code.rehearsal.questions.axes import along, sized_by, stacks
from trainwreck.code.rehearsal.questions.factors import arguments
from trainwreck.code.rehearsal.questions.gathered import samples
from trainwreck.code.rehearsal.questions.roles import RAW

SWAPS = frozenset(["transpose", "swapaxes", "swapdims", "t", "T", "mT"])
CONVOLUTIONS = frozenset(["conv1d", "conv2d", "conv3d", "convtranspose1d", "convtranspose2d", "convtranspose3d"])
RECURRENT = frozenset(["lstm", "gru", "rnn"])
ATTENTION = frozenset(
    """transformerencoder transformerdecoder transformerencoderlayer transformerdecoderlayer transformer
    multiheadattention""".split()
)
KEEPS = RAW | RECURRENT | ATTENTION | frozenset(
    """embedding layer_norm batch_norm group_norm rms_norm rmsnorm dropout relu gelu tanh sigmoid silu softplus
    elu leaky_relu softmax log_softmax logsigmoid cumprod exp log clamp neg abs sqrt float to double long int
    detach clone contiguous scale masked_fill setitem eq ne lt gt le ge invert logical_not cumsum flip roll
    normalize sin cos pow square data cuda cpu grucell lstmcell rnncell gather take_along_dim type
    requires_grad_ nan_to_num from_numpy tensor as_tensor numpy avgpool1d maxpool1d avg_pool1d max_pool1d
    avgpool2d maxpool2d avg_pool2d max_pool2d adaptiveavgpool1d adaptiveavgpool2d adaptivemaxpool1d
    adaptivemaxpool2d adaptive_avg_pool1d adaptive_avg_pool2d upsample interpolate hardswish mish prelu""".split()
)  # fmt: skip
"""What leaves the samples on their axis."""
BROADCAST = frozenset(["add", "sub", "mul", "div", "where", "maximum", "minimum", "and", "or"])
REDUCES = frozenset("mean sum max min amax amin argmax argmin std var logsumexp prod norm any all median".split())
MADE = frozenset(["full", "zeros", "ones", "empty"])
DRAWN = frozenset(["randperm", "randint", "permutation", "choice", "element", "integers"])
LAID = frozenset(["setitem", "long", "float", "to", "from_numpy", "tensor", "as_tensor", "eq", "ne", "contiguous"])
DEPTH = 90
TABLE = 2
"""Axes of what is added to each sample alike (one row for each position, say)."""

Known = dict[int, int | None]


def sample_axis(run: Rehearsing, value: Value) -> int | None:
    """The axis of the samples, counted from the left; None where it isn't known, or there is none."""
    known: Known = run.memo.setdefault("sample-axes", {})
    return _axis(value, known, 0)


def _axis(value: Value, known: Known, depth: int) -> int | None:
    if not isinstance(value, Node) or depth > DEPTH:
        return None
    if id(value) not in known:
        known[id(value)] = None
        known[id(value)] = _computed(value, known, depth + 1)
    return known[id(value)]


def _computed(node: Node, known: Known, depth: int) -> int | None:
    op = node.op
    first = node.inputs[0] if node.inputs else None
    if op == "batch":
        return _collated(node, first, known, depth)
    if op == "either":
        found = {_axis(c, known, depth) for c in candidates(node)}
        return found.pop() if len(found) == 1 else None
    if op in CONVOLUTIONS:
        return 0
    if op in ("tensor", "as_tensor", "array", "asarray") and isinstance(first, tuple | Items):
        return 0 if samples(_listed(first)) else None
    if op in ("stack", "cat", "concat", "concatenate"):
        return _joined(node, first, known, depth)
    if op in ("pad_packed_sequence", "pad_sequence"):
        return 0 if node.get("batch_first", 1, False) is True else 1
    if op in BROADCAST:
        return _together(node, known, depth)
    if op == "part" and isinstance(first, Node):
        return _part(first, node, known, depth)
    base = _axis(first, known, depth)
    if op == "getitem" and isinstance(first, Node):
        return _indexed(node, first, base)
    if op in ("view", "reshape") and base is None:
        return 0 if _axis(sized_by(node), known, depth) == 0 else None
    if base is None or not isinstance(first, Node):
        return None
    rank = len(first.shape.dims) if not first.shape.open else None
    rest = arguments(node)
    if op in KEEPS:
        return base
    if op in SWAPS or op == "permute":
        return _moved(op, base, rest, rank)
    if op in ("unsqueeze", "squeeze") and rest and isinstance(at := rest[0], int):
        count = rank if rank is not None else None
        if at < 0 and count is None:
            return None
        at = at if at >= 0 else at + (count or 0) + (op == "unsqueeze")
        return base + 1 if op == "unsqueeze" and at <= base else base - (op == "squeeze" and at < base)
    if op in ("bmm", "matmul"):
        return base if base == 0 else None
    if op in REDUCES:
        return _reduced(node, base, rank)
    if op in ("view", "reshape", "flatten"):
        return _reshaped(node, first, base)
    return None


def _collated(node: Node, first: Value, known: Known, depth: int) -> int | None:
    """Samples that a loader stacked lie along axis 0; what a function of the program gathered, as it did that."""
    loader = node.owner
    gathers = loader is not None and loader.options.get("collate_fn") is not None
    if (not node.shape.dims or node.shape.open) and not gathers:
        return 0 if stacks(loader) else None
    if loader is None or loader.options.get("collate_fn") is None:
        return 0
    at, moves = first, []
    for _ in range(12):
        if not isinstance(at, Node):
            return None
        if at.op == "pad_sequence":
            found: int | None = 0 if at.get("batch_first", 1, False) is True else 1
            break
        if at.op in SWAPS or at.op == "permute":
            moves.append(at)
        elif at.op in ("stack", "cat", "tensor", "as_tensor", "array") and at.inputs and _open(at.inputs[0]):
            along_ = (*arguments(at), 0)[0] if at.op == "stack" else 0
            found = along_ if isinstance(along_, int) and along_ >= 0 else None
            break
        elif at.op in MADE and (counted := _counted(at)) is not None:
            found = counted
            break
        elif at.op not in LAID:
            return None
        at = at.inputs[0] if at.inputs else None
    else:
        return None
    for move in reversed(moves):
        rank = len(move.shape.dims) if not move.shape.open else None
        found = None if found is None else _moved(move.op, found, arguments(move), rank)
    return found


def _counted(node: Node) -> int | None:
    """The axis of an array that has as many elements as there are samples: ``full((len(rows), longest), 0)``."""
    sizes = node.inputs[0] if node.inputs and isinstance(node.inputs[0], tuple | Items) else node.inputs
    listed = list(sizes.items) if isinstance(sizes, Items) else list(sizes)
    found = [n for n, size in enumerate(listed) if isinstance(size, Node) and size.op == "len" and size.inputs
             and _open(size.inputs[0])]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _open(value: Value) -> bool:
    return isinstance(value, Items) and value.more


def _listed(value: Value) -> list[Value]:
    return list(value) if isinstance(value, tuple) else list(value.items) if isinstance(value, Items) else []


def _joined(node: Node, first: Value, known: Known, depth: int) -> int | None:
    items = _listed(first)
    found = {_axis(i, known, depth) for i in items} - {None}  # what is joined has its axes in one order
    dim = (*arguments(node), 0)[0]
    if node.op == "stack" and samples(items):
        return dim if isinstance(dim, int) and dim >= 0 else None
    axis = found.pop() if len(found) == 1 else None
    if axis is None or not isinstance(dim, int):
        return None
    rank = len(node.shape.dims) if not node.shape.open else None
    if dim < 0:
        if rank is None:
            return None
        dim += rank
    if node.op == "stack":
        return axis + (dim <= axis)
    return axis if dim != axis else None


def _together(node: Node, known: Known, depth: int) -> int | None:
    """The side with as many axes as the result decides; both where both have."""
    sides = [i for i in node.inputs[:3] if isinstance(i, Node) and (i.shape.dims or i.shape.open)]
    whole = [s for s in sides if len(s.shape.dims) == len(node.shape.dims) and not s.shape.open]
    if node.shape.open:  # one side of a rank that isn't known, and tables that are added to each sample of it
        of_any = [s for s in sides if s.shape.open]
        tables = all(len(s.shape.dims) <= TABLE for s in sides if not s.shape.open)
        whole = of_any if len(of_any) == 1 and tables else []
    found = {axis for s in whole if (axis := _axis(s, known, depth)) is not None}
    return found.pop() if len(found) == 1 else None


def _indexed(node: Node, first: Node, base: int | None) -> int | None:
    index = node.inputs[1] if len(node.inputs) > 1 else None
    items = index if isinstance(index, tuple) else (index,)
    if base is None:
        rows = items[0]
        picked = isinstance(rows, Node) and len(rows.shape.dims) == 1 and not rows.shape.open
        drawn = picked and any(n.op in DRAWN for n in nearest(rows))
        return 0 if drawn and len(items) == 1 else None
    if Ellipsis in items or any(isinstance(i, tuple | Items | str) for i in items):
        return None
    at, moved = 0, base
    for item in items:
        if item is None:
            moved += at <= base
            continue
        number = isinstance(item, Node) and not item.shape.open and not item.shape.dims
        if isinstance(item, int) or number:
            if at == base:
                return None
            moved -= at < base
        elif isinstance(item, Node):
            return base if at == base == 0 and len(items) == 1 and len(item.shape.dims) == 1 else None
        at += 1
    return moved


def nearest(value: Value) -> Iterator[Node]:
    for _ in range(6):
        if not isinstance(value, Node):
            return
        yield value
        value = value.inputs[0] if value.inputs else None


def _part(first: Node, node: Node, known: Known, depth: int) -> int | None:
    base = _axis(first.inputs[0] if first.inputs else None, known, depth)
    number = node.inputs[1] if len(node.inputs) > 1 else None
    if first.op == "pad_packed_sequence":
        return _axis(first, known, depth) if number == 0 else None
    if first.op in RECURRENT:
        return base if number == 0 else None
    if first.op in ("chunk", "split", "tensor_split"):
        dim = (*arguments(first)[1:], 0)[0]
        return base if dim != base else None
    if first.op == "unbind":
        dim = (*arguments(first), 0)[0]
        if base is None or not isinstance(dim, int) or dim < 0 or dim == base:
            return None
        return base - (dim < base)
    return None


def _moved(op: str, base: int, rest: tuple[Value, ...], rank: int | None) -> int | None:
    order: Value = rest[0] if len(rest) == 1 else rest
    order = tuple(order.items) if isinstance(order, Items) else order
    if op in ("t", "T", "mT"):
        if rank is None or (op != "mT" and rank != 2):
            return None
        order = (rank - 2, rank - 1)
    if not isinstance(order, tuple) or not all(isinstance(o, int) for o in order):
        return None
    if any(o < 0 for o in order):
        if rank is None:
            return None
        order = tuple(o % rank for o in order)
    if op == "permute":
        return order.index(base) if base in order else None
    if len(order) != 2:
        return None
    return order[1] if base == order[0] else order[0] if base == order[1] else base


def _reduced(node: Node, base: int, rank: int | None) -> int | None:
    dim = along(node)
    gone = dim if isinstance(dim, tuple) else tuple(dim.items) if isinstance(dim, Items) else (dim,)
    if not all(isinstance(d, int) for d in gone):
        return None
    if any(d < 0 for d in gone):
        if rank is None:
            return None
        gone = tuple(d % rank for d in gone)
    if base in gone:
        return None
    kept = node.options.get("keepdim") is True or node.options.get("keepdims") is True
    return base if kept else base - sum(d < base for d in gone)


def _reshaped(node: Node, first: Node, base: int) -> int | None:
    """The first axis stays where it is asked for by its own size."""
    if base != 0:
        return None
    rest = arguments(node)
    if node.op == "flatten":
        start = (*rest, 0)[0]
        return 0 if start == 1 else None
    sizes = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple | Items) else rest
    listed = list(sizes.items) if isinstance(sizes, Items) else list(sizes)
    if not listed:
        return None
    size = listed[0]
    same = isinstance(size, int) and size > 1 and not first.shape.open and size == first.shape.dims[0]
    own = isinstance(size, Node) and size.op in ("size", "len", "getitem", "part")
    kept = not node.shape.open and len(node.shape.dims) == len(first.shape.dims) and size == -1
    return 0 if same or own or kept else None


__all__ = ["sample_axis"]
