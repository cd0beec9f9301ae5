"""Frames and symbols of a connectionist temporal classification: does each symbol have a frame of the output?

A path needs at least one frame for each symbol. How many frames are left is told by the shape of the output, or by how
many frames the data have for each symbol and by what the layers skip."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, carries, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.alignments import Pace, setting_of, without_path
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, bounds, trained

DRAWN = frozenset(["randint", "integers", "choice", "randrange"])
CONVOLUTIONS = frozenset(["conv1d", "conv2d", "maxpool1d", "maxpool2d", "avgpool1d", "avgpool2d", "max_pool1d",
                          "max_pool2d", "avg_pool1d", "avg_pool2d"])  # fmt: skip
STRETCHES = frozenset(
    ["interpolate", "upsample", "convtranspose1d", "convtranspose2d", "conv_transpose1d", "unfold", "stft", "fold"]
)
"""What makes more frames of them, or other ones."""
SAME_LENGTH = frozenset("batch pad_sequence either part copy stack add long int".split())
"""What leaves rows of targets as long as they are (beside what moves and selects rows)."""
HANDED = frozenset("batch int item long tensor as_tensor array stack".split())
TESTS = frozenset("eq ne gt lt ge le and or invert".split())
BESIDE = frozenset(["cat", "concat", "concatenate", "hstack"])
"""What may put silence before and behind what is spoken."""
MANY = 0.05
"""So large a share of samples that can't be aligned is no matter of a few long ones."""
SOME = 0.005
"""Where nothing sets infinite losses to zero, one of them makes the gradients of its batch NaN: with so large a share
one in every few batches of the usual sizes (16 to 64) has one."""
LONG = 10
"""Symbols of a target of which the length is not known."""
DEEP = 80


def too_few(run: Rehearsing) -> Iterator[Answer]:
    """Targets that have more symbols than the network gives frames for."""
    told: set[int] = set()
    for loss in trained(run):
        if loss.op != "ctc_loss" or len(loss.inputs) < 2 or loss.place is None or id(loss.place[0]) in told:
            continue
        output, targets = loss.inputs[:2]
        if not isinstance(output, Node) or not isinstance(targets, Node):
            continue
        told.add(id(loss.place[0]))
        layers, data = _skipping(output)
        answer = _by_shape(loss, output, layers) or _by_ratio(run, loss, targets, layers, data)
        if answer is not None:
            yield answer


# ---------------------------------------------------------------------- a number of frames that is known
def _by_shape(loss: Node, output: Node, layers: list[tuple[Node, int]] | None) -> Answer | None:
    frames = output.shape.dims[0] if len(output.shape.dims) == 3 and not output.shape.open else None
    lengths = loss.inputs[3] if len(loss.inputs) > 3 else loss.options.get("target_lengths")
    known = _spread(lengths)
    if not isinstance(frames, int) or known is None or known[1] <= frames:
        return None
    low, high = known
    share = 1.0 if low > frames else (high - frames) / (high - low + 1)
    if share < MANY:
        return None
    whose = f"{high:g} symbols" if low == high else f"{low:g} to {high:g} symbols"
    text = f"the network gives {frames} frames, and targets have {whose}: no path fits them, and their loss is infinite"
    narrow = [node for node, _ in layers or ()]
    return Answer(_place(narrow[-1] if narrow else loss), text, (loss.place,) if narrow and loss.place else ())


def _spread(value: Value, depth: int = 0) -> tuple[float, float] | None:
    """The least and the most that numbers of symbols are, where all between them occur."""
    if depth > DEEP:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value), float(value)
    if isinstance(value, tuple | Items):
        known = [_spread(v, depth + 1) for v in (value.items if isinstance(value, Items) else value)]
        found = [k for k in known if k is not None]
        return (min(f[0] for f in found), max(f[1] for f in found)) if found and len(found) == len(known) else None
    if not isinstance(value, Node):
        return None
    first = value.inputs[0] if value.inputs else None
    if value.op in DRAWN:
        found_bounds = bounds(value)
        finite = math.isfinite(found_bounds.low) and math.isfinite(found_bounds.high)
        return (found_bounds.low, found_bounds.high) if finite else None
    if value.op in ("full", "full_like", "new_full"):
        filled = value.options.get("fill_value", value.inputs[1] if len(value.inputs) > 1 else None)
        return _spread(filled, depth + 1)
    if value.op == "add" and len(value.inputs) == 2 and isinstance(value.inputs[1], int):
        inner = _spread(first, depth + 1)
        return None if inner is None else (inner[0] + value.inputs[1], inner[1] + value.inputs[1])
    if value.op == "either":
        return _spread(tuple(candidates(value)), depth + 1)
    if value.op in ("len", "size"):
        return _rows(first, depth + 1)
    keeps = value.op in STRUCTURE or value.op in (
        "batch",
        "int",
        "item",
        "long",
        "tensor",
        "as_tensor",
        "array",
        "stack",
    )
    return _spread(first, depth + 1) if keeps else None


def _rows(value: Value, depth: int) -> tuple[float, float] | None:
    """How many symbols one target has."""
    drawn = _texts(value) if isinstance(value, Node) else []
    sizes = [_size(d) for d in drawn]
    return _spread(tuple(sizes), depth + 1) if sizes and None not in sizes else None


def _size(drawn: Node) -> Value:
    size = drawn.options.get("size", next((i for i in drawn.inputs if isinstance(i, tuple)), None))
    return size[0] if isinstance(size, tuple) and len(size) == 1 else size if isinstance(size, int | Node) else None


# ---------------------------------------------------------------------- so many frames for each symbol
def _by_ratio(
    run: Rehearsing, loss: Node, targets: Node, layers: list[tuple[Node, int]] | None, data: Node | None
) -> Answer | None:
    texts = _texts(targets)
    if not layers or data is None or not texts:
        return None
    pace = _each(data, {id(t.place[0]) for t in texts if t.place is not None})
    if pace is None:
        return None
    known = [_spread(_size(t)) for t in texts]
    longest = min((k[1] for k in known if k is not None), default=LONG)
    lengths = known[0] if len({*known}) == 1 and known[0] is not None else (longest, longest)
    left = each = pace.mean
    for number, (layer, stride) in enumerate(layers, 1):
        left /= stride
        share = without_path(pace, lengths, _alphabet(texts), [s for _, s in layers[:number]])
        if math.ceil(left * longest) < longest or share > (MANY if _left_out(loss) else SOME):
            text = f"the data have about {each:g} frames for each symbol, and after this layer {left:.2g}: targets"
            text += " need more frames than there are, and their loss is infinite"
            built = layer.owner if isinstance(layer.owner, Obj) else None
            place = _place(layer)
            setting = setting_of(run, built, stride) if built is not None and place is built.place else None
            return Answer(setting or place, text, (loss.place,) if loss.place is not None else ())
    return None


def _left_out(loss: Node) -> bool:
    """True where an infinite loss counts as none, or may."""
    layer = loss.owner if isinstance(loss.owner, Obj) else None
    given = loss.options.get("zero_infinity", layer.get("zero_infinity", 2, False) if layer is not None else False)
    return given is not False


def _alphabet(texts: list[Node]) -> float | None:
    """How many symbols targets are drawn from, each as often as another."""
    found = {(b.low, b.high) for t in texts if t.op in ("randint", "integers", "randrange") for b in [bounds(t)]}
    low, high = found.pop() if len(found) == 1 else (0.0, math.inf)
    return high - low + 1 if math.isfinite(high - low) else None


def _texts(targets: Node) -> list[Node]:
    """The draws that targets are made of, symbol by symbol; none where anything may change how many there are."""
    found: dict[int, Node] = {}
    queue, seen = [targets], {id(targets)}
    while queue:
        node = queue.pop()
        if node.op in DRAWN:
            found[id(node)] = node
            continue
        joined = node.op in JOINS or node.op in SAME_LENGTH or node.op in ("tensor", "as_tensor", "array")
        if not joined and (node.op not in STRUCTURE or node.op in ("repeat_interleave", "repeat", "chunk")):
            return []
        if node.op == "getitem" and len(node.inputs) > 1 and _cuts(node.inputs[1]):
            return []
        for value in node.inputs if node.op == "add" else node.inputs[:1]:
            for inner in parts(value):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    queue.append(inner)
        if len(seen) > 200:
            return []
    return list(found.values())


def _cuts(index: Value) -> bool:
    held = index if isinstance(index, tuple) else (index,)
    return any(isinstance(i, Obj) or (isinstance(i, Node) and i.op in TESTS) for i in held)


def _each(data: Node, texts: set[int]) -> Pace | None:
    """How many frames of the data stand for one symbol."""
    for node in ancestors(data, through=carries):
        if node.op == "pad":
            return None
        if node.op in ("repeat_interleave", "repeat") and node.inputs:
            method = node.op == "repeat_interleave" or node.full.startswith("numpy.")
            if not method or not _made_of(node.inputs[0], texts):
                continue
            times = node.options.get("repeats", node.inputs[1] if len(node.inputs) > 1 else None)
            known = _spread(times)
            return None if known is None else Pace(0, *known)
        if node.op in JOINS and node.inputs and isinstance(node.inputs[0], Items):
            rows = [r for r in node.inputs[0].items if isinstance(r, Node)]
            if not rows or not all(_one_symbol(r, texts) for r in rows):
                if node.op in BESIDE:
                    return None
                continue
            paces = [p for r in rows if (p := _pace(r)) is not None]
            if len(paces) < len(rows) or len({*paces}) == 1:
                return paces[0] if len(paces) == len(rows) else None
            return Pace(0, min(p.fixed + p.low for p in paces), max(p.fixed + p.high for p in paces))
    return None


def _pace(row: Node) -> Pace | None:
    """How many frames the row of one symbol has, which may be joined from several parts."""
    joined = row.op in JOINS and bool(row.inputs) and isinstance(row.inputs[0], Items)
    rows = [r for r in row.inputs[0].items if isinstance(r, Node)] if joined else [row]
    sizes = [_spread(_frames(r)) for r in rows]
    known = [s for s in sizes if s is not None]
    spread = [s for s in known if s[0] != s[1]]
    if not known or len(known) < len(sizes) or len(spread) > 1:
        return None
    return Pace(sum(s[0] for s in known if s[0] == s[1]), *(spread[0] if spread else (0, 0)))


def _made_of(value: Value, texts: set[int]) -> bool:
    return any(n.op in DRAWN and n.place is not None and id(n.place[0]) in texts
               for n in ancestors(value, through=carries))  # fmt: skip


def _one_symbol(row: Node, texts: set[int]) -> bool:
    """True for frames that are made of one symbol out of a target, and what is put beside them."""
    if row.op in JOINS and row.inputs and isinstance(row.inputs[0], Items):
        beside = [r for r in row.inputs[0].items if isinstance(r, Node)]
        mine = [_one_symbol(r, texts) for r in beside]
        return any(mine) and all(m or not _made_of(r, texts) for m, r in zip(mine, beside, strict=True))
    for node in ancestors(row, through=carries):
        if node.op in JOINS:
            return False  # those of a whole text
        if node.op == "element" and _made_of(node, texts):
            return True
        if node.op in DRAWN and node.place is not None and id(node.place[0]) in texts:
            return False
    return False


def _frames(row: Node) -> Value:
    """How many frames one symbol gets."""
    if row.shape.dims and not row.shape.open and isinstance(row.shape.dims[0], int):
        return row.shape.dims[0]
    for node in ancestors(row, through=carries):
        if node.op in ("repeat", "expand", "tile") and len(node.inputs) > 1:
            first = node.inputs[1]
            return first[0] if isinstance(first, tuple) and first else first
    return None


# ---------------------------------------------------------------------- what the layers skip
def _skipping(output: Node) -> tuple[list[tuple[Node, int]] | None, Node | None]:
    """The layers that leave out frames, from the data on, with their strides, and the data; None where the way isn't
    understood."""
    found: list[tuple[Node, int]] = []
    at: Value = output
    for _ in range(DEEP):
        if not isinstance(at, Node):
            return None, None
        if not at.grad:
            return found[::-1], at
        if at.op in STRETCHES or at.op in ("cat", "split", "chunk", "narrow", "opaque", "call", "unknown"):
            return None, None
        if at.op in CONVOLUTIONS:
            stride = _stride(at)
            if stride is None:
                return None, None
            if stride > 1:
                found.append((at, stride))
        elif at.op in ("view", "reshape", "unflatten") and not _whole(at):
            return None, None
        elif at.op == "getitem":
            step = _step(at)
            if step is None:
                return None, None
            if step > 1:
                found.append((at, step))
        data = [i for i in at.inputs if isinstance(i, Node) and i.op != "param"]
        grown = [i for i in data if i.grad]
        at = next(iter(grown or data), None)
    return None, None


def _whole(node: Node) -> bool:
    """True for a reshape that joins channels and bands, and leaves the frames: none of its sizes is a quotient."""
    return not any(n.op in ("div", "floor_divide") for i in node.inputs[1:] for n in parts(i))


def _stride(node: Node) -> int | None:
    pool = "pool" in node.op
    layer = node.owner if isinstance(node.owner, Obj) and node.owner.cls is None else None
    if layer is not None:
        value = layer.get("stride", 1 if pool else 3, layer.get("kernel_size", 0) if pool else 1)
    else:
        data = [i for i in node.inputs if not isinstance(i, Node)]
        value = node.options.get("stride", (data[-1] if data else None) if pool else 1)
    if isinstance(value, tuple):
        value = value[0] if value and all(v == value[0] for v in value) else None
    return value if isinstance(value, int) and value > 0 else None


def _step(node: Node) -> int | None:
    """Every how many frames a slice takes; None where it takes a part of them."""
    index = node.inputs[1] if len(node.inputs) > 1 else None
    steps = [1]
    for part in index if isinstance(index, tuple) else (index,):
        if part is None or part is Ellipsis or isinstance(part, int):
            continue
        if not isinstance(part, Obj) or part.kind != "builtins.slice":
            return None
        low, high, step = part.args
        if high is not None or not (low is None or isinstance(low, int)):
            return None
        steps.append(1 if step is None else step if isinstance(step, int) and step > 0 else 0)
    return max(steps) if 0 not in steps else None


def _place(node: Node) -> Place:
    """Where a layer is built, or where the program says with which stride; else where the value is computed."""
    layer = node.owner if isinstance(node.owner, Obj) else None
    place = layer.place if layer is not None and layer.cls is None and layer.place is not None else node.place
    assert place is not None
    return (_told(layer, place) if layer is not None and place is layer.place else None) or place


def _told(layer: Obj, place: Place) -> Place | None:
    """The call that hands the strides, written out, to the function that builds the layer with them."""
    call, scope = place
    if not isinstance(call, ast.Call) or not layer.stack or scope.kind != "function":
        return None
    named = [k.value for k in call.keywords if k.arg in ("stride", "kernel_size")]
    wanted = _names([*named, *call.args[2:]])
    for inner in ast.walk(scope.node):
        if isinstance(inner, ast.For | ast.comprehension) and wanted & _names([inner.target]):
            wanted |= _names([inner.iter])
    caller, around = layer.stack[-1]
    own = [p for p in scope.params if p != "self"]
    if not isinstance(caller, ast.Call) or around is scope:
        return None
    given = {k.arg: k.value for k in caller.keywords if k.arg} | dict(zip(own, caller.args, strict=False))
    written = [v for name, v in given.items() if name in wanted and not _names([v])]
    return layer.stack[-1] if written else None


def _names(trees: list[ast.expr]) -> set[str]:
    return {n.id for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name)}
