"""Contrastive losses as a cross entropy: does the class that is named as right stand where the positive is?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adversarial import level
from trainwreck.code.rehearsal.questions.roles import JOINS, PRODUCTS, STRUCTURE, trained
from trainwreck.code.rehearsal.questions.terms import number_of, parameters_behind

SCALES = frozenset(["mul", "div", "masked_fill", "fill_diagonal", "setitem", "sub", "add", "float",
                    "clamp"])  # fmt: skip
MOVES = frozenset(
    ["view", "reshape", "long", "to", "type", "cuda", "contiguous", "clone", "int", "tensor", "as_tensor"]
)


def misplaced_positive(run: Rehearsing) -> Iterator[Answer]:
    """The targets name another column than the one in which the positives stand."""
    for node in trained(run):
        if node.op != "cross_entropy" or len(node.inputs) < 2 or not isinstance(node.inputs[1], Node):
            continue
        logits, target = _scores(node.inputs[0]), node.inputs[1]
        if logits is None:
            continue
        found = _joined(logits, target) if logits.op in JOINS else _square(logits, target)
        if found is not None:
            place, text = found
            yield Answer(place, text, (node.place,) if node.place is not None else ())
            return


def _scores(value: Value) -> Node | None:
    """The similarities behind logits, without scale and masks."""
    for _ in range(12):
        if not isinstance(value, Node) or value.op in JOINS or value.op in PRODUCTS:
            return value if isinstance(value, Node) else None
        if value.op in SCALES and value.inputs:
            sides = [i for i in value.inputs[:2] if isinstance(i, Node) and i.grad]
            value = sides[0] if len(sides) == 1 else None
        elif value.op in STRUCTURE and value.inputs and value.op not in ("getitem", "gather", "masked_select"):
            value = value.inputs[0]
        else:
            return None
    return None


def _joined(logits: Node, target: Node) -> tuple[Place, str] | None:
    """``cat([one positive, many negatives])``: the number of the right column is that of the positive."""
    items = logits.inputs[0] if logits.inputs else None
    listed = list(items.items) if isinstance(items, Items) else list(items) if isinstance(items, tuple) else []
    axis = logits.options.get("dim", logits.options.get("axis", logits.inputs[1] if len(logits.inputs) > 1 else 0))
    if len(listed) != 2 or axis not in (1, -1) or not all(isinstance(i, Node) for i in listed):
        return None
    widths = [_width(i) for i in listed]
    if widths.count(1) != 1 or not all(_compared(i) for i in listed):
        return None
    first = widths[0] == 1
    column = level(target)
    place = logits.place
    if column is None:
        if _counts_up(target) and target.place is not None and not _in_batch(listed[1 if first else 0]):
            return target.place, "the positive of each row stands in one column, and the targets count the rows"
        return None
    if place is None or (column == 0) == first or (not first and column != 0):
        return None
    where = "first" if first else "last"
    return place, f"the positive stands in the {where} column, and the targets name column {column:g}"


def _in_batch(wide: Node) -> bool:
    """True where each row is compared with the rows of its own batch: the positive stands on that diagonal."""
    product = _scores(wide)
    if product is None or product.op not in PRODUCTS or len(product.inputs) < 2:
        return False
    one, other = (_rows(i) for i in product.inputs[-2:])
    if one is None or other is None:
        return False
    count, its = one.shape.dim(0), other.shape.dim(0)
    return (one.grad and other.grad) or (isinstance(count, int) and count == its)


def _width(node: Node) -> int | None:
    """The size of the last axis; 0 where it is known to be more than one."""
    if node.shape.open and not node.shape.dims:
        return 0 if node.op in PRODUCTS else None
    size = node.shape.dim(-1)
    if isinstance(size, int):
        return size
    return 0 if (_scores(node) or node).op in PRODUCTS else None


def _compared(node: Node) -> bool:
    """True for products of computed values: similarities, not outputs of a layer."""
    for inner in parts(node):
        at: Node = inner
        for _ in range(8):
            if at.op in PRODUCTS or at.op in ("mul", "cosine_similarity"):
                return bool(parameters_behind(at))
            if (at.op not in STRUCTURE and at.op not in ("sum", "div", "exp")) or not at.inputs:
                return False
            step = next(iter(parts(at.inputs[0])), None)
            if step is None:
                return False
            at = step
    return False


def _counts_up(target: Node) -> bool:
    """``arange(n)``, or the same in two halves: each row is its own target."""
    at: Value = target
    for _ in range(8):
        if not isinstance(at, Node):
            return False
        if at.op == "arange":
            return sum(not isinstance(i, str) for i in at.inputs) - len(at.options) <= 1
        if at.op in JOINS and at.inputs:
            halves = list(parts(at.inputs[0]))
            return len(halves) == 2 and halves[1].op in ("add", "arange") and _counts_up(halves[0])
        if at.op not in MOVES or not at.inputs:
            return False
        at = at.inputs[0]
    return False


def _square(logits: Node, target: Node) -> tuple[Place, str] | None:
    """Every row against every row: of one list, a row's positive is never itself; of two, it is in the same place."""
    if len(logits.inputs) < 2 or target.place is None:
        return None
    one, other = (_rows(i) for i in logits.inputs[-2:])
    if one is None or other is None or not parameters_behind(one) or not parameters_behind(other):
        return None
    if one is other and _counts_up(target):
        return target.place, "each row is compared with all of its own list, and the targets name the row itself"
    if any(n.op in ("flip", "roll") for n in (one, other)):
        return None  # so are the rows themselves
    if one is not other and one.grad and other.grad and _alike(one, other) and (moved := _moved(target)) is not None:
        return moved.place or target.place, "the positives stand on the diagonal, and the targets have another order"
    if one is not other and level(target) == 0.0 and one.grad and other.grad and _alike(one, other):
        return target.place, "the positives stand on the diagonal, and the targets name the first column"
    return None


def _moved(target: Node) -> Node | None:
    """Where numbers that count the rows are turned round, shifted or shuffled."""
    at: Value = target
    for _ in range(8):
        if not isinstance(at, Node) or not at.inputs:
            return None
        if at.op in ("flip", "roll") and isinstance(at.inputs[0], Node) and _counts_up(at.inputs[0]):
            return at
        if at.op not in MOVES:
            return None
        at = at.inputs[0]
    return None


def _rows(value: Value) -> Node | None:
    """What is compared, without transposition."""
    for _ in range(8):
        if not isinstance(value, Node):
            return None
        if (
            value.op not in ("t", "T", "transpose", "mT", "permute", "detach", "contiguous", "element")
            or not value.inputs
        ):
            return value
        value = value.inputs[0]
    return None


def _alike(one: Node, other: Node) -> bool:
    """True for two batches of embeddings, of which none is a table of weights."""
    return all(
        n.op != "param" and number_of(n) is None and (n.shape.open or len(n.shape.dims) == 2) for n in (one, other)
    )
