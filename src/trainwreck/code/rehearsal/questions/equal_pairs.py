"""Gaps that are exactly zero: two draws that met the same sample, weights that are still those of their copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import times
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, backwards, trained
from trainwreck.code.rehearsal.questions.terms import ERRORS, axes, number_of
from trainwreck.code.shapes.domain import Shape
from trainwreck.core.row import Row

DRAWN = frozenset(["randint", "integers", "randrange"])
"""Whole numbers drawn one by one: any two of them may be the same."""
ORDERS = frozenset(["randperm", "permutation"])
PICKS = frozenset(["getitem", "index_select", "embedding", "gather", "take"])
FIXED = (
    frozenset(
        """linear embedding conv1d conv2d conv3d relu gelu silu tanh sigmoid softplus elu leaky_relu mish selu softmax
        layer_norm group_norm normalize matmul mm add sub mul div neg pow square exp log sin cos clamp abs sqrt part
        layernorm groupnorm flatten identity prelu hardtanh relu6 batch""".split()
    )
    | STRUCTURE
    | JOINS
)
"""What gives the same for the same input, for each sample alone."""
ENOUGH = 3.0
"""Pairs of equal samples that a training meets on the average: fewer than one run in twenty (exp(-3)) has none."""
DEEPEST = 200
Test = Callable[[Value, Value], bool]


def meets_itself(run: Rehearsing) -> Iterator[Answer]:
    """A root of the distance of two samples that are drawn apart, and may be one and the same."""
    for node in _roots(run):
        gaps = list(_gaps(node.inputs[0], of_samples=True))
        meetings = {_meeting(*gap.inputs[:2]) for gap in gaps}
        meeting = meetings.pop() if len(meetings) == 1 else None
        if meeting is None or node.place is None or _met(run, node, gaps[0]) * meeting.chance < ENOUGH:
            continue
        if _asked(run, meeting):
            continue  # the program knows of such pairs
        text = "both sides are drawn from the same samples, and now and then are the same one"
        yield Answer(node.place, f"{text}: the root of 0 has no gradient")


def begins_alike(run: Rehearsing) -> Iterator[Answer]:
    """A root of the distance of what is trained from a copy of it, at a time when it hasn't moved yet."""
    for node in _roots(run):
        gaps = list(_gaps(node.inputs[0], of_samples=False))
        if gaps and node.place is not None and all(_unmoved(run, node, *g.inputs[:2]) for g in gaps):
            text = "nothing has moved from its copy when this is computed first, and the root of 0 has no gradient"
            yield Answer(node.place, text)


def _roots(run: Rehearsing) -> Iterator[Node]:
    """The first root of each place that training goes through."""
    places = {id(n.place[0]) for n in trained(run) if n.place is not None and _is_root(n)}
    for node in run.nodes:
        if node.place is not None and id(node.place[0]) in places and _is_root(node) and node.grad and not node.maybe:
            places.discard(id(node.place[0]))
            yield node


def _is_root(node: Node) -> bool:
    half = node.op == "pow" and node.inputs[1:2] in ((0.5,), (-0.5,))
    return bool(node.inputs) and (half or node.op in ("sqrt", "rsqrt"))


def _gaps(value: Value, *, of_samples: bool, depth: int = 0) -> Iterator[Node]:
    """The differences whose squares the value is a sum of and of nothing else; none where anything else is in it.

    ``of_samples``: the sums leave the axis of the samples (the first) alone."""
    found = _squares(value, of_samples, depth)
    yield from found or ()


def _squares(value: Value, of_samples: bool, depth: int) -> list[Node] | None:
    if not isinstance(value, Node) or not value.inputs or depth > DEEPEST:
        return None
    first = value.inputs[0]
    if value.op == "add" and len(value.inputs) == 2 and not value.options:
        sides = [[] if number_of(i) == 0 else _squares(i, of_samples, depth + 1) for i in value.inputs]
        return None if None in sides else [g for s in sides for g in s or ()]
    if value.op in ("sum", "mean"):
        if isinstance(first, Node):
            apart = not of_samples or _leaves_first(value, first.shape)
            return _squares(first, of_samples, depth + 1) if apart else None
        return None
    doubled = value.op == "mul" and len(value.inputs) == 2 and value.inputs[0] is value.inputs[1]
    if doubled or value.op in ("square", "abs") or (value.op == "pow" and value.inputs[1:2] in ((2,), (2.0,))):
        inner = first
        while isinstance(inner, Node) and inner.op in STRUCTURE and inner.op != "getitem" and inner.inputs:
            inner = inner.inputs[0]
        return [inner] if isinstance(inner, Node) and inner.op == "sub" and len(inner.inputs) == 2 else None
    if value.op in ERRORS and len(value.inputs) > 1 and not of_samples:
        return [value]
    if value.op == "mul" and len(value.inputs) == 2 and any(number_of(i) is not None for i in value.inputs):
        return _squares(first if number_of(first) is None else value.inputs[1], of_samples, depth + 1)
    if value.op == "div" and len(value.inputs) == 2 and number_of(value.inputs[1]) is not None:
        return _squares(first, of_samples, depth + 1)
    kept = value.op in STRUCTURE and value.op not in ("getitem", "gather", "masked_select", "index_select")
    return _squares(first, of_samples, depth + 1) if kept else None


def _leaves_first(total: Node, shape: Shape) -> bool:
    """True for a sum over other axes than the first."""
    over = axes(total)
    if over is None or shape.open:
        return False
    return len(shape.dims) > 1 and all(a % len(shape.dims) != 0 for a in over)


# ------------------------------------------------------------------------------- samples that are drawn
class Meeting(Row):
    """Two indices, or none and an order, and how likely a pair is of the same sample."""

    one: Node | None
    other: Node
    chance: float


def _meeting(one: Value, other: Value) -> Meeting | None:
    """Where two sides that are computed in the same way part; None where they don't, or at more than one place."""
    found: set[Meeting] = set()

    def meet(a: Value, b: Value) -> bool:
        met = _drawn_alike(a, b) if isinstance(a, Node) and isinstance(b, Node) else None
        found.update([met] if met is not None else [])
        return met is not None

    return found.pop() if same(one, other, meet) and len(found) == 1 else None


def same(one: Value, other: Value, meet: Test, depth: int = 0) -> bool:
    """True for two values that are computed in the same way, up to those of which ``meet`` says that they may be
    the same."""
    if one is other:
        return True
    if not isinstance(one, Node) or not isinstance(other, Node):
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            return all(same(a, b, meet, depth + 1) for a, b in zip(one, other, strict=True))
        if isinstance(one, Obj) and isinstance(other, Obj):
            return one.kind == other.kind == "builtins.slice" and one.args == other.args
        return type(one) is type(other) and isinstance(one, int | float | str | bool) and one == other
    if depth > DEEPEST:
        return False
    if meet(one, other):
        return True
    alike = one.op == other.op and one.op in FIXED and len(one.inputs) == len(other.inputs) > 0
    if not alike or one.options.keys() != other.options.keys() or (one.op == "batch" and one.owner is not other.owner):
        return False
    pairs = [*zip(one.inputs, other.inputs, strict=True), *((v, other.options[k]) for k, v in one.options.items())]
    return all(same(a, b, meet, depth + 1) for a, b in pairs)


def _drawn_alike(one: Node, other: Node) -> Meeting | None:
    """``table[i]`` and ``table[j]``, or ``rows`` and ``rows[order]``, that may be the same."""
    mine, theirs = _picked(one), _picked(other)
    if mine is not None and theirs is not None and mine[0] is theirs[0]:
        chance = _equal(mine[1], theirs[1])
        return Meeting(mine[1], theirs[1], chance) if chance else None
    for picked, whole in ((mine, other), (theirs, one)):
        if picked is not None and picked[0] is whole and picked[1].op in ORDERS and (count := _count(picked[1])):
            return Meeting(None, picked[1], 1 / count)
    return None


def _picked(node: Node) -> tuple[Value, Node] | None:
    """The table and the index of a pick of whole rows by an index that is computed."""
    if node.op not in PICKS or len(node.inputs) < 2:
        return None
    table, index = node.inputs[:2]
    if node.op == "embedding":
        table, index = index, table
    elif node.op == "index_select":
        table, index = (table, node.inputs[2]) if index == 0 and len(node.inputs) > 2 else (table, None)
    elif node.op in ("gather", "take"):
        return None
    return (table, index) if isinstance(index, Node) else None


def _equal(one: Node, other: Node) -> float:
    """The chance that two indices are the same: drawn apart, from the same numbers."""
    for index, draw in ((one, _source(other)), (other, _source(one))):
        if index.op == "index" and draw is not None and draw[0].op in DRAWN:
            numbers = _range(draw[0])  # the loader hands out every number in its turn
            return 1 / numbers[1] if numbers is not None and numbers[0] == 0 else 0.0
    mine, theirs = _source(one), _source(other)
    if mine is None or theirs is None or mine == theirs:
        return 0.0
    (first, path), (second, way) = mine, theirs
    if first.op in ORDERS and second.op in ORDERS:
        return 1 / count if first is not second and path == way and (count := _count(first)) else 0.0
    if first.op not in DRAWN or second.op not in DRAWN or (first is second and len(path) != len(way)):
        return 0.0
    here, there = _range(first), _range(second)
    if here is None or there is None:
        return 0.0
    common = min(here[1], there[1]) - max(here[0], there[0])
    return max(common, 0) / ((here[1] - here[0]) * (there[1] - there[0]))


MOVES = frozenset(["long", "to", "cuda", "cpu", "int", "tensor", "as_tensor", "from_numpy", "astype", "numpy"])
"""What hands numbers on as they are."""


def _source(index: Node) -> tuple[Node, tuple[object, ...]] | None:
    """What an index was drawn by, and which part of the draw it is."""
    at, path = index, list[object]()
    for _ in range(8):
        if at.op in DRAWN or at.op in ORDERS:
            return at, tuple(path)
        inner = at.inputs[0] if at.inputs else None
        if not isinstance(inner, Node):
            return None
        if at.op in ("part", "getitem", "element") and len(at.inputs) == 2:
            chosen = at.inputs[1] if isinstance(at.inputs[1], tuple) else (at.inputs[1],)
            if any(isinstance(c, Node) for c in chosen):
                return None
            path.append(tuple(f"{c.kind}{c.args}" if isinstance(c, Obj) else c for c in chosen))
        elif at.op not in MOVES:
            return None
        at = inner
    return None


def _range(draw: Node) -> tuple[int, int] | None:
    """The numbers that are drawn from: the first, and the one behind the last."""
    numbers: list[int] = []
    for item in draw.inputs:
        if isinstance(item, Node | Obj) and not numbers:
            continue  # a generator
        if not isinstance(item, int) or isinstance(item, bool):
            break
        numbers.append(item)
    if len(numbers) == 1 and "high" not in draw.options:
        numbers.insert(0, 0)
    low, high = (*numbers, None, None)[:2]
    low, high = draw.options.get("low", low or 0), draw.options.get("high", high)
    if draw.full == "random.randint" and isinstance(high, int):
        high += 1
    return (low, high) if isinstance(low, int) and isinstance(high, int) and high > low else None


def _count(order: Node) -> int | None:
    """How many are put in order."""
    given = next((i for i in order.inputs if isinstance(i, int) and not isinstance(i, bool)), None)
    return given if given is not None and given > 1 else None


def _asked(run: Rehearsing, meeting: Meeting) -> bool:
    """True where the program compares the two indices anywhere."""
    wanted = {_born(i) for i in meeting[:2] if isinstance(i, Node)}
    tests = (n for n in run.nodes if n.op in ("eq", "ne") and len(n.inputs) > 1)
    return any(wanted <= {_born(i) for i in test.inputs if isinstance(i, Node)} for test in tests)


def _born(index: Node) -> int:
    """Where (by ``id``) the numbers of an index come from, and which of them they are."""
    source = _source(index)
    place = (source[0] if source is not None else index).place
    return hash((id(place[0]) if place is not None else 0, source[1] if source is not None else ()))


def _met(run: Rehearsing, root: Node, gap: Node) -> float:
    """How many pairs a training compares; 0 where that isn't known."""
    size = gap.shape.dims[0] if gap.shape.dims and not gap.shape.open else None
    if size is None:
        loaders = (n.owner for n in ancestors(gap) if n.op == "batch" and n.owner is not None)
        given = next((o.get("batch_size", 1) for o in loaders), None)
        size = given if isinstance(given, int) else None
    if size is None or root.place is None:
        return 0.0
    place = root.place[0]
    events = [e for e in backwards(run) if any(n.place and n.place[0] is place for n in ancestors(e.subject))]
    known = times(run, events[-1:]) if events else None
    return size * (known if known is not None else FEW)


FEW = 100
"""Steps that any training has, where their number isn't known."""


# ------------------------------------------------------------------------------- copies
def _unmoved(run: Rehearsing, root: Node, one: Value, other: Value) -> bool:
    """True where both sides are computed in the same way from weights and their copies, before anything moves one."""
    copies: list[int] = []

    def meet(a: Value, b: Value) -> bool:
        if not isinstance(a, Node) or not isinstance(b, Node) or "param" not in (a.op, b.op):
            return False
        mine, theirs = _copied_from(a, root), _copied_from(b, root)
        shared = {id(n) for n in mine} & {id(n) for n in theirs}
        if not shared:
            return False
        copies.append(min(n.serial for n in (*mine, *theirs) if id(n) not in shared))
        return True

    if not same(one, other, meet) or not copies:
        return False
    moving = (e.serial for e in run.tape if e.name in ("load_state_dict", "step"))
    return not any(min(copies) < serial < root.serial for serial in moving)


def _copied_from(value: Node, root: Node) -> list[Node]:
    """A value and those that it was copied from, without a change before ``root``; nothing where it was changed."""
    found = [value]
    while (at := found[-1]).inputs and len(found) < 8:
        inner = at.inputs[0]
        if at.op not in COPIES or not isinstance(inner, Node):
            break
        found.append(inner)
    changed = (w.serial < root.serial and w.name != "requires_grad" for n in found[:-1] for w in n.writes)
    late = (w.serial < root.serial and w.serial > found[0].serial for w in found[-1].writes)
    return [] if any(changed) or any(late) else found


COPIES = frozenset(["param", "buffer", "clone", "detach", "data", "to", "cpu", "cuda", "float"])
