"""Predictions and targets that broadcast: (N, 1) meets (N,), in the loss or on the way to a target."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import POINTWISE, batch_first
from trainwreck.code.rehearsal.questions.paths import RANDOM
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE, core, given, trained, users
from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis
from trainwreck.code.shapes.domain import Shape

PICKS = frozenset(["gather", "getitem", "index_select", "take_along_dim", "narrow"])
ROWS = frozenset(["gather", "take_along_dim"])
"""What takes one value out of each row, and leaves a column."""
ELEMENTWISE = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss"])


def broadcast(run: Rehearsing) -> Iterator[Answer]:
    """(N, 1) meets (N,)."""
    for node in trained(run):
        if node.place is None or len(node.inputs) < 2:
            continue
        if node.op in ELEMENTWISE:
            one, other = given(node, "input", 0), given(node, "target", 1)
        elif node.op in ("sub", "mul") and node.grad and not node.options.get("inplace"):
            one, other = node.inputs[0], node.inputs[1]
        else:
            continue
        if not isinstance(one, Node) or not isinstance(other, Node):
            continue
        squared = node.op == "sub" and any(u.op in ("pow", "square", "abs") for u in users(run).get(id(node), ()))
        if (squared or node.op in ELEMENTWISE) and (met := _crossed_before(run, one, other)) is not None:
            yield Answer(met, "each element meets all others in what this is compared with", (node.place,))
            continue
        if not _crossed(one.shape, other.shape):
            continue
        if node.op in ("sub", "mul") and not _of_samples(run, node, one, other):
            continue
        text = f"shapes {one.shape} and {other.shape}: each prediction meets the targets of all samples"
        yield Answer(_where(run, node, one, other), text, (node.place,))


def _crossed_before(run: Rehearsing, one: Node, other: Node) -> Place | None:
    """Where (N, 1) met (N,) in the target of (N,) predictions, which became (N, N)."""
    column = [len(side.shape.dims) == 1 or side.shape.dims[1:] == (1,) for side in (one, other)]
    flat, square = (one, other) if column[0] else (other, one)
    if flat.shape.open or square.shape.open or sum(column) != 1 or len(square.shape.dims) != 2:
        return None
    for node in ancestors(square, through=lambda n: n.op in ("add", "sub", "mul", "div", "detach", "float", "clamp")):
        if node.op not in ("add", "sub", "mul") or len(node.inputs) < 2:
            continue
        mine, its = node.inputs[:2]
        if isinstance(mine, Node) and isinstance(its, Node) and _crossed(mine.shape, its.shape):
            return _where(run, node, mine, its) if node.place is not None else None
    return None


def _crossed(one: Shape, other: Shape) -> bool:
    if one.open or other.open or {len(one.dims), len(other.dims)} != {1, 2}:
        return False
    long, short = (one, other) if len(one.dims) == 2 else (other, one)
    sizes = (long.dims[0], short.dims[0])
    return long.dims[1] == 1 and 1 not in sizes and (None in sizes or sizes[0] == sizes[1])


def _of_samples(run: Rehearsing, node: Node, one: Node, other: Node) -> bool:
    """True for an operation written by hand that is meant sample by sample: no axis was added for it."""
    for side in (one, other):
        if side.op in ("unsqueeze", "getitem", "expand", "outer", "param", "buffer") and len(side.shape.dims) == 2:
            return False
        sure = batch_first(side) or sample_axis(run, side) == 0 or side.shape.dims[0] is not None or _gathered(side)
        if not sure and not (node.op == "sub" and _one_a_row(side) and _reduced_whole(run, node)):
            return False
        if side.op == "param" or (len(side.shape.dims) == 1 and _of_a_grid(side)):
            return False
    if _weighs(run, node) or _all_pairs(run, node):
        return False
    if node.op == "sub":
        after = users(run).get(id(node), ())
        if one.grad == other.grad:
            return False
        if any(u.op in ("square", "abs", "mul", "huber") or (u.op == "pow" and u.inputs[1:2] == (2,)) for u in after):
            return True
        samples = [batch_first(side) or sample_axis(run, side) == 0 for side in (one, other)]
        return all(samples) and _reduced_whole(run, node)
    return _reduced_whole(run, node)


def _of_a_grid(side: Node) -> bool:
    """True for centres or edges that lie in a row: they belong to no sample."""
    nodes = list(ancestors(side))
    behind = {n.op for n in nodes}
    made = behind & GRIDS or any(n.op in ("tensor", "as_tensor", "array") and _numbers(n.inputs[:1]) for n in nodes)
    return side.op == "buffer" or (bool(made) and not behind & {"batch", "param", *RANDOM})


def _numbers(given: tuple[Value, ...]) -> bool:
    """True for a row of numbers that are written out."""
    held = given[0] if given else None
    items = held.items if isinstance(held, Items) and not held.more else held if isinstance(held, tuple) else ()
    return bool(items) and all(isinstance(i, int | float) for i in items)


def _weighs(run: Rehearsing, node: Node, depth: int = 0) -> bool:
    """True where the distances become weights: the kernel of each with each."""
    for user in users(run).get(id(node), ()):
        if user.op in ("exp", "softmax", "rbf", "expm1"):
            return True
        if (
            user.op in ("pow", "square", "abs", "neg", "mul", "div", "sum")
            and depth < 6
            and _weighs(run, user, depth + 1)
        ):
            return True
    return False


def _all_pairs(run: Rehearsing, node: Node) -> bool:
    """True where the same lines also set values against themselves: each is meant to meet all others."""
    for other in run.nodes:
        same = other.op == node.op and other.place is not None and node.place is not None and len(other.inputs) > 1
        if not same or other.place is None or node.place is None or other.place[1] is not node.place[1]:
            continue
        one, two = (_bare(side) for side in other.inputs[:2])
        if one is not None and one is two and other.inputs[0] is not other.inputs[1]:
            return True
    return False


def _bare(side: Value) -> Value:
    while isinstance(side, Node) and side.op in AXES and side.inputs:
        side = side.inputs[0]
    return side if isinstance(side, Node) else None


AXES = frozenset(["reshape", "view", "unsqueeze", "getitem", "t", "T", "transpose"])
GRIDS = frozenset(["linspace", "arange", "logspace"])


def _gathered(side: Node) -> bool:
    """True for values of many samples or steps that were put behind each other."""
    for node in ancestors(side, through=lambda n: n.op in STRUCTURE | BETWEEN or n.op == "log_prob"):
        if node.op in ("cat", "stack", "concat") and node.inputs and isinstance(node.inputs[0], Items):
            return node.inputs[0].more and len(node.inputs) + len(node.options) < 2
    return False


def _one_a_row(side: Node) -> bool:
    """True for what was picked out of each row of a table (``q.gather(1, action)``), for what was worked out from
    numbers of a list that is open (rewards of many steps), or by layers from rows that were put behind each other."""
    if len(side.shape.dims) > 1 and (picked := _picked(side)) is not None and picked.op in ROWS:
        return True
    for node in ancestors(side, through=lambda n: n.op in STRUCTURE | BETWEEN | RAW | POINTWISE):
        first = node.inputs[0] if node.inputs else None
        if node.op in ("stack", "tensor", "as_tensor", "array", "FloatTensor") and isinstance(first, Items):
            return first.more and (node.op != "stack" or len(node.inputs) + len(node.options) < 2)
    return False


def _reduced_whole(run: Rehearsing, node: Node, depth: int = 0) -> bool:
    """True where the mean or sum of everything follows."""
    for user in users(run).get(id(node), ()):
        if user.op in ("mean", "sum") and not user.shape.open and not user.shape.dims:
            return True
        if user.op in BETWEEN and depth < 12 and _reduced_whole(run, user, depth + 1):
            return True
    return False


BETWEEN = frozenset(
    """neg mul minimum min sub add maximum where clamp relu softplus log exp cosh tanh square abs pow sqrt div
    logsigmoid log1p""".split()
)
"""What lies between a difference and the mean of all."""


def _where(run: Rehearsing, node: Node, one: Node, other: Node) -> Place:
    """The line that gives one of the two sides its shape."""
    assert node.place is not None
    changed = [c for c in (_changer(one), _changer(other)) if c is not None and not _for_many(run, c)]
    if len(changed) == 1 and changed[0].place is not None:
        return changed[0].place
    if changed or _fits_elsewhere(run, node, one, other):
        return node.place
    long, short = (one, other) if len(one.shape.dims) == 2 else (other, one)
    picked = _picked(long)
    here = picked is not None and picked.place is not None and picked.place[1] is node.place[1]
    if here and picked is not None and picked.place is not None and picked.op in ROWS and picked.grad:
        return picked.place
    for found in core(short):
        if found.op == "batch" and found.inputs and isinstance(found.inputs[0], Node):
            example = found.inputs[0]
            if example.place is not None and example.place[1].name == "__getitem__":
                return example.place
    for found in core(long):
        if found.op in RAW and found.place is not None and found.place[1].owner is not None:
            if found.place[1] is node.place[1]:
                break  # a stack of layers that is called right here
            if _squeezed_elsewhere(run, found):
                return node.place
            if picked is not None and picked.place is not None:
                return picked.place
            scope = found.place[1]
            value = next((v for v in scope.returns if v is not None), None)
            return (value, scope) if value is not None else found.place
    return node.place


def _for_many(run: Rehearsing, changer: Node) -> bool:
    """True for a helper that also reshapes values of another number of axes."""
    mine = len(changer.shape.dims)
    place = changer.place[0] if changer.place is not None else None
    same = [n for n in run.nodes if n.op == changer.op and n.place is not None and n.place[0] is place]
    return any(not n.shape.open and len(n.shape.dims) != mine for n in same)


def _squeezed_elsewhere(run: Rehearsing, layer: Node) -> bool:
    """True where the program takes the one column away in another place: the layer is meant to have it."""
    place = layer.place[0] if layer.place is not None else None
    for node in run.nodes:
        if node.op not in ("squeeze", "view", "reshape", "flatten", "ravel", "getitem") or not node.inputs:
            continue
        made = node.inputs[0]
        if isinstance(made, Node) and made.op == layer.op and made.place is not None and made.place[0] is place:
            return not node.shape.open and len(node.shape.dims) < len(made.shape.dims)
    return False


def _fits_elsewhere(run: Rehearsing, node: Node, one: Node, other: Node) -> bool:
    """True if another place compares the same two after a change of one: an evaluation that does it right."""
    sides = [_made_at(side) for side in (one, other)]
    for user in run.nodes:
        if user.op not in (*ELEMENTWISE, "sub") or user.place is None or len(user.inputs) < 2:
            continue
        if node.place is not None and user.place[0] is node.place[0]:
            continue
        first, second = user.inputs[0], user.inputs[1]
        if not isinstance(first, Node) or not isinstance(second, Node) or _crossed(first.shape, second.shape):
            continue
        found = [_made_at(side) for side in (first, second)]
        if all(a & b for a, b in zip(sides, found, strict=True)) and len(first.shape.dims) == len(second.shape.dims):
            return True
    return False


def _made_at(side: Node) -> set[int]:
    """Where the values of a prediction or a target are computed, by ``id``, or the layer that does; of a batch, where
    one sample is."""
    found: set[int] = set()
    for node in core(side):
        if node.op in RAW and node.owner is not None:
            found.add(id(node.owner))
        example = node.inputs[0] if node.op == "batch" and node.inputs else None
        place = example.place if isinstance(example, Node) and example.place is not None else node.place
        if place is not None:
            found.add(id(place[0]))
    return found


def _picked(side: Node) -> Node | None:
    """What took one column out of several and left the axis: ``values.gather(1, action[:, None])``."""
    at = side
    for _ in range(20):
        inner = at.inputs[0] if at.inputs else None
        if not isinstance(inner, Node) or at.op not in STRUCTURE:
            return None
        alike = not inner.shape.open and len(inner.shape.dims) == len(at.shape.dims) > 1
        if at.op in PICKS and alike and at.shape.dims[-1] == 1 and inner.shape.dims[-1] not in (1, None):
            return at
        at = inner
    return None


def _changer(side: Node) -> Node | None:
    """The operation nearest to the loss that gave the value another number of axes."""
    at = side
    for _ in range(20):
        if at.op == "batch" or not at.inputs or not isinstance(at.inputs[0], Node):
            return None
        inner = at.inputs[0]
        if at.op in ("squeeze", "unsqueeze", "view", "reshape", "flatten", "getitem", "ravel") and (
            not inner.shape.open
            and len(inner.shape.dims) != len(at.shape.dims)
            and (at.op != "getitem" or 1 in (*inner.shape.dims[1:], *at.shape.dims[1:]))  # one column of many is data
        ):
            return at
        if at.op not in STRUCTURE and at.op not in ("softplus", "sigmoid", "exp", "relu", "mul", "add"):
            return None
        at = inner
    return None
