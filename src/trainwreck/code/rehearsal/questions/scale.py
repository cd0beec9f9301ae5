"""How large are the numbers that go into a network, and those that it is to predict?

The centre and the spread of a value are followed from where the program makes it (``normal(70, 12)``, ``rand()``,
``* 255``). Data that are read from somewhere have none: nothing is said about them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Table, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.joined_columns import columns_of
from trainwreck.code.rehearsal.questions.paths import statistic
from trainwreck.code.rehearsal.questions.roles import JOINS, bounds, trained
from trainwreck.core.row import Row

LARGE = 40.0
"""Root mean square from which on inputs or targets are far from what initialisation and rates are made for (about 1).
Adam moves a bias by its rate a step: at 1e-3 it takes 40,000 steps to reach 40."""
MAX_DEPTH = 60
LAYERS = frozenset(["linear", "conv1d", "conv2d", "conv3d", "lstm", "gru", "rnn", "lazylinear"])
REGRESSIONS = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
BOUNDED = {"tanh": (0.0, 0.6), "sigmoid": (0.5, 0.3), "sin": (0.0, 0.7), "cos": (0.0, 0.7), "softmax": (0.1, 0.1)}
KEEPS = frozenset(
    """getitem batch element part split reshape view astype float to from_numpy tensor as_tensor array asarray clone
    copy data contiguous squeeze unsqueeze permute transpose flatten expand double float32 detach numpy T pin_memory
    roll flip values ascontiguousarray item cpu cuda loaded concatenate cat stack hstack vstack repeat tile sort pad
    tolist float64 index_select take either setitem unfold attribute""".split()
)


class Size(Row):
    """Centre and spread (standard deviation) of the numbers."""

    centre: float
    spread: float

    @property
    def rms(self) -> float:
        return math.hypot(self.centre, self.spread)


def size(value: Value, memo: dict[int, Size | None], depth: int = 0) -> Size | None:
    """What can be told of the numbers of ``value``; None where nothing can."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return Size(float(value), 0.0)
    if isinstance(value, tuple | Items | Table):
        inner = (
            value.entries.values() if isinstance(value, Table) else value.items if isinstance(value, Items) else value
        )
        return _mixed([size(v, memo, depth + 1) for v in inner])
    if not isinstance(value, Node) or depth > MAX_DEPTH:
        return None
    if id(value) not in memo:
        memo[id(value)] = None
        found = _computed(value, memo, depth + 1)
        memo[id(value)] = found if found is not None and found.rms < 1e12 else None
    return memo[id(value)]


def _mixed(sizes: list[Size | None]) -> Size | None:
    known = [s for s in sizes if s is not None]
    if not known or len(known) < len(sizes):
        return None
    centre = sum(s.centre for s in known) / len(known)
    square = sum(s.rms**2 for s in known) / len(known)
    return Size(centre, math.sqrt(max(0.0, square - centre**2)))


def _computed(node: Node, memo: dict[int, Size | None], depth: int) -> Size | None:
    op, given = node.op, list(node.inputs)
    if op in ("randn", "standard_normal", "randn_like"):
        return Size(0.0, 1.0)
    if op in ("rand", "random", "rand_like"):
        return Size(0.5, 0.29)
    if op in ("normal", "uniform", "integers", "randint"):
        return _drawn(node)
    if op in ("arange", "linspace"):
        return _drawn(node)
    if op in BOUNDED:
        return Size(*BOUNDED[op])
    if op == "setitem" and _row_by_row(node) and (filled := size(given[1], memo, depth)) is not None:
        return filled  # nothing is left of the zeros that it was made with
    if op == "setitem":
        return _mixed([size(v, memo, depth) for v in given[:2]])
    if op == "getitem" and (picked := columns_of(node))[0]:
        return size(picked[1], memo, depth)
    if op == "getitem" and (column := _column(node, memo, depth)) is not None:
        return column
    if op in KEEPS:
        kept = size(given[0], memo, depth) if given and op != "either" else None
        mixed = kept if given and op != "either" else _mixed([size(v, memo, depth) for v in given])
        return BYTES if mixed is None and _whole_bytes(node) else mixed
    if op in ("full", "fill"):
        return size(node.get("fill_value", 1), memo, depth)
    if op in ("zeros", "zeros_like", "ones", "ones_like"):
        return Size(0.0 if op.startswith("zeros") else 1.0, 0.0)
    if op in ("add", "sub", "mul", "div") and len(given) >= 2:
        return _combined(op, given[0], given[1], memo, depth)
    if op == "neg" and given:
        inner = size(given[0], memo, depth)
        return Size(-inner.centre, inner.spread) if inner else None
    if op == "where" and len(given) > 2:
        return _mixed([size(v, memo, depth) for v in given[1:3]])
    if op in ("exp", "log", "log1p", "sqrt", "abs", "pow", "clip", "clamp") and given:
        inner = size(given[0], memo, depth)
        if inner is None and op in ("clip", "clamp") and 1 < (limits := bounds(node)).high < math.inf > -limits.low:
            inner = Size((limits.low + limits.high) / 2, (limits.high - limits.low) / math.sqrt(12))
        return _curved(node, inner)
    return BYTES if _bytes(node) else None


def _column(node: Node, memo: dict[int, Size | None], depth: int) -> Size | None:
    """The size of the one column that is taken here, where the columns of the table differ."""
    from trainwreck.code.rehearsal.questions.one_scale import sizes

    index = node.inputs[1] if len(node.inputs) > 1 else None
    place = index[-1] if isinstance(index, tuple) and len(index) == 2 else None
    if not isinstance(place, int) or isinstance(place, bool):
        return None
    columns = sizes(node.inputs[0], memo, depth)
    if columns is None or not columns.known:
        return None
    return columns.known.get(place + (columns.width or 0) if place < 0 else place, columns.rest)


def _row_by_row(node: Node) -> bool:
    """True for ``x[i] = ...`` with the number of a loop."""
    index = node.inputs[2] if len(node.inputs) > 2 else None
    counted = isinstance(index, Node) and index.op == "counter"
    return counted or (isinstance(index, int) and not isinstance(index, bool) and bool(node.turns))


IMAGE = Size(0.4, 0.3)
"""Intensities between 0 and 1, as a rough guess."""
BYTES = Size(100.0, 75.0)
"""Intensities between 0 and 255: photographs have a mean of about 120 and a deviation of 65, MNIST of 33 and 79."""
PICTURES = ("read_image", "decode_image", "decode_png", "decode_jpeg", "imread", "imdecode", "pil_to_tensor")
DATASETS = frozenset("MNIST FashionMNIST KMNIST QMNIST EMNIST CIFAR10 CIFAR100 SVHN STL10 USPS".split())


def _whole_bytes(node: Node) -> bool:
    """True where values from 0 to 255 become whole numbers: intensities of a picture."""
    if node.op not in ("astype", "to", "byte", "uint8") or not node.inputs:
        return False
    wanted = [*node.inputs[1:], *node.options.values(), node.op]
    found = bounds(node.inputs[0])
    return any("uint8" in str(getattr(v, "dotted", v)) for v in wanted) and (found.low, found.high) == (0.0, 255.0)


def _bytes(node: Node) -> bool:
    """True for pictures in whole numbers from 0 to 255, by the function that reads them."""
    if node.op in PICTURES and node.full.partition(".")[0] in ("torchvision", "cv2", "imageio", "skimage"):
        return not node.full.startswith("skimage") or node.op == "imread"
    if node.op == "attribute" and node.name == "data" and node.inputs:
        holder = node.inputs[0]
        return isinstance(holder, Obj) and holder.kind.startswith("torchvision.datasets.") and holder.name in DATASETS
    return False


def _drawn(node: Node) -> Size | None:
    """``normal(loc, scale)``, ``uniform(low, high)``, ``integers(low, high)`` of numpy, torch or random."""
    inputs = node.inputs[: max(0, len(node.inputs) - len(node.options))]  # options stand behind what has a position
    inputs = inputs if node.full else inputs[1:]  # a method: the first is the generator itself
    numbers = [v for v in inputs if isinstance(v, int | float) and not isinstance(v, bool)]
    loc, scale = node.options.get("loc", node.options.get("mean")), node.options.get("scale", node.options.get("std"))
    if node.op == "normal":
        centre = loc if isinstance(loc, int | float) else numbers[0] if numbers else 0.0
        spread = scale if isinstance(scale, int | float) else numbers[1] if len(numbers) > 1 else 1.0
        if any(isinstance(v, Node) for v in (loc, scale, *inputs[:2])):
            return None
        return Size(float(centre), abs(float(spread)))
    if any(isinstance(v, Node) for v in inputs[:2]):
        return None  # a limit that is computed: the numbers that remain are others (how many there are)
    low, high = node.options.get("low"), node.options.get("high")
    bounds = [v for v in (low, high) if isinstance(v, int | float)] or numbers[:2]
    if len(bounds) == 1:
        bounds = [0, bounds[0]]
    if len(bounds) != 2:
        return Size(0.5, 0.29) if node.op == "uniform" and not inputs else None
    if node.op in ("integers", "randint"):
        count = max(1.0, bounds[1] - bounds[0])  # the upper end is not among them
        return Size((bounds[0] + bounds[1] - 1) / 2, math.sqrt((count * count - 1) / 12))
    return Size((bounds[0] + bounds[1]) / 2, abs(bounds[1] - bounds[0]) / math.sqrt(12))


def _combined(op: str, one: Value, other: Value, memo: dict[int, Size | None], depth: int) -> Size | None:
    if op in ("sub", "div") and isinstance(other, Node) and statistic(other):
        left = size(one, memo, depth)
        if left is None:
            return None
        return Size(0.0, left.spread) if op == "sub" else Size(left.centre / (left.spread or 1.0), 1.0)
    a, b = size(one, memo, depth), size(other, memo, depth)
    if a is None or b is None or (op == "mul" and any(_both_signs(i) for i in (one, other))):
        return None
    if op in ("add", "sub"):
        return Size(a.centre + (b.centre if op == "add" else -b.centre), math.hypot(a.spread, b.spread))
    if op == "div":
        return (
            Size(a.centre / b.centre, a.spread / abs(b.centre)) if b.centre and b.spread < abs(b.centre) / 2 else None
        )
    square = (a.rms * b.rms) ** 2
    centre = a.centre * b.centre
    return Size(centre, math.sqrt(max(0.0, square - centre**2)))


def _both_signs(value: Value) -> bool:
    """True for factors of each column that are written out, some of which turn theirs round: a mirror."""
    if not isinstance(value, Node) or value.op not in ("tensor", "array", "as_tensor"):
        return False
    limits = bounds(value)
    return limits.low < 0 < limits.high < math.inf


def _curved(node: Node, inner: Size | None) -> Size | None:
    if inner is None:
        return None
    centre, spread = inner.centre, inner.spread
    if node.op == "exp":
        if abs(centre) + spread > 20:
            return None
        mean = math.exp(centre + min(spread, 2.0) ** 2 / 2)
        return Size(mean, mean * math.sqrt(math.expm1(min(spread, 2.0) ** 2)))
    if node.op == "abs":
        return Size(max(abs(centre), 0.8 * spread), 0.6 * spread)
    if node.op in ("log", "log1p", "sqrt"):
        if centre <= 0:
            return None
        base = math.sqrt(centre) if node.op == "sqrt" else math.log(centre + (1 if node.op == "log1p" else 0) or 1e-9)
        return Size(base, min(1.0, spread / centre) * (base if node.op == "sqrt" else 1.0))
    if node.op == "pow":
        power = node.inputs[1] if len(node.inputs) > 1 else None
        return Size(inner.rms**2, inner.rms**2) if power == 2 else None
    bounds = [v for v in node.inputs[1:3] if isinstance(v, int | float)]
    low = node.options.get("min", node.options.get("a_min", bounds[0] if bounds else None))
    high = node.options.get("max", node.options.get("a_max", bounds[1] if len(bounds) > 1 else None))
    if isinstance(low, int | float) and centre < low:
        centre = float(low)
    if isinstance(high, int | float) and centre > high:
        centre = float(high)
    span = abs(high - low) if isinstance(low, int | float) and isinstance(high, int | float) else spread
    return Size(centre, min(spread, span))


# ---------------------------------------------------------------------- questions
def large_inputs(run: Rehearsing) -> Iterator[Answer]:
    """Inputs of the first layer whose numbers are large by the way that the program makes them, with no norm before."""
    if not _acts(run):
        yield from _large(run)


def large_observations(run: Rehearsing) -> Iterator[Answer]:
    """The same of what a policy is shown."""
    if _acts(run):
        yield from _large(run)


def _acts(run: Rehearsing) -> bool:
    """True for a policy: actions are drawn from what the network gives, and their probabilities are trained."""
    drawn = any(n.op == "sample" or n.op == "multinomial" for n in run.nodes)
    return drawn and any(n.op == "log_prob" and n.grad for n in trained(run))


def _large(run: Rehearsing) -> Iterator[Answer]:
    memo: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    told: set[int] = set()
    for event in run.tape:
        if event.name != "backward":
            continue
        for node in graph(event.subject):
            if node.op not in LAYERS or not node.grad or not node.inputs or not isinstance(node.inputs[0], Node):
                continue
            given = node.inputs[0]
            if given.grad or id(node) in told:
                continue
            told.add(id(node))
            known = size(given, memo)
            if known is None or known.rms < LARGE or node.place is None:
                continue
            place = _columns_at(given, memo) or _made_at(given) or node.place
            text = f"the network's inputs are about {known.rms:.0f} in size here, and nothing scales them"
            yield Answer(place, text, (node.place,))


def large_targets(run: Rehearsing) -> Iterator[Answer]:
    """Targets of a squared or absolute error that are large, for an output that comes from a layer as it is."""
    memo: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    told: set[int] = set()
    for event in run.tape:
        if event.name != "backward":
            continue
        for node in graph(event.subject):
            if not node.grad or node.op not in (*REGRESSIONS, "sub") or len(node.inputs) < 2 or id(node) in told:
                continue
            told.add(id(node))
            pairs = [(node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])]
            for output, target in pairs:
                if not (isinstance(output, Node) and isinstance(target, Node)) or target.grad or not _plain(output):
                    continue
                if node.op == "sub" and not _squared(node, event.subject):
                    continue
                known = size(target, memo)
                if known is None or known.rms < LARGE or node.place is None:
                    continue
                place = _made_at(target) or node.place
                text = f"the target is about {known.rms:.0f} in size here, and the network starts near 0"
                yield Answer(place, text, (node.place,))


def _plain(output: Node) -> bool:
    """True where the output of a layer is used as it is: not scaled, not curved."""
    at = output
    while at.op in ("squeeze", "getitem", "view", "reshape", "flatten", "unsqueeze", "part"):
        if not at.inputs or not isinstance(at.inputs[0], Node):
            return False
        at = at.inputs[0]
    return at.op == "linear" and (at.owner is None or is_module(at.owner))


def _squared(node: Node, loss: Value) -> bool:
    users = [n for n in graph(loss) if any(i is node for i in n.inputs)]
    return any(u.op in ("pow", "square", "abs") or (u.op == "mul" and u.inputs.count(node) > 1) for u in users)


def _columns_at(given: Node, memo: dict[int, Size | None]) -> Place | None:
    """Where columns are put together of which one is much larger than another."""
    walked = ancestors(given, through=lambda n: n.op in KEEPS or n.op in JOINS)
    for node in walked:
        columns = node.inputs[0] if node.inputs and node.op in (*JOINS, "array", "tensor", "column_stack") else None
        items = list(columns) if isinstance(columns, tuple) else columns.items if isinstance(columns, Items) else []
        if len(items) < 2 or (isinstance(columns, Items) and columns.more):
            continue
        known = [k.rms for i in items if (k := size(i, memo)) is not None]
        if known and max(known) >= LARGE and node.place is not None:
            return node.place
    return None


def _made_at(value: Node) -> Place | None:
    """The last place on the way at which the numbers could have been scaled: where the batch's array is taken."""
    at = value
    for _ in range(MAX_DEPTH):
        if at.op in ("batch", "part") and at.inputs and isinstance(at.inputs[0], Node):
            at = at.inputs[0]
            continue
        break
    cast = _cast(at)
    return cast.place if cast is not None else at.place


def _cast(value: Node) -> Node | None:
    """Where whole numbers were made real ones on the way: the usual place to divide by their range."""
    at, cast = value, None
    for _ in range(MAX_DEPTH):
        if at.op in ("float", "double", "float32", "float64") or (at.op in ("astype", "to") and _real(at)):
            cast = at
        elif at.op in ("astype", "to", "byte", "uint8") or at.op in (*PICTURES, "randint", "integers") or _bytes(at):
            return cast
        if at.op not in KEEPS or at.op == "either" or not at.inputs or not isinstance(at.inputs[0], Node):
            return None
        at = at.inputs[0]
    return None


def _real(node: Node) -> bool:
    """True for a conversion to a real type, as it is written."""
    wanted = [*node.inputs[1:], *node.options.values()]
    return any("float" in str(getattr(v, "dotted", v)) for v in wanted)


__all__ = ["KEEPS", "Size", "large_inputs", "large_targets", "size"]
