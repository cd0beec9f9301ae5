"""Do the labels fit the number of outputs that a classification loss is given?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Table, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, core, given, losses

INTEGERS = frozenset(["randint", "integers", "randrange", "randint_like"])
FLAGS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])
KEEPS = frozenset(["long", "int", "astype", "element", "getitem", "batch", "to", "tensor", "array", "asarray", "list"])
FLOATS = frozenset(["float", "double", "half", "bfloat16"])
MASKS = FLAGS | {"compare", "logical_and", "logical_not", "and", "not", "invert"}
DEFAULT = -100
"""``ignore_index`` where none is given."""
MAX_DEPTH = 30

Span = tuple[int, int]


def beyond(run: Rehearsing) -> Iterator[Answer]:
    """Labels that reach a class number for which the network has no output, or one below zero."""
    told: set[int] = set()
    for loss in losses(run, "cross_entropy", "nll_loss"):
        logits, labels = given(loss, "input", 0), given(loss, "target", 1)
        count = _outputs(logits)
        if count is None or not isinstance(labels, Node) or not isinstance(logits, Node):
            continue
        if not labels.shape.open and len(labels.shape.dims) == len(logits.shape.dims):
            continue
        reach = span(labels)
        if reach is None or (reach[0] >= 0 and reach[1] < count) or _ignored(loss, reach, count):
            continue
        shifted, made = shift(labels), _layer(logits)
        if shifted is None and not any(n.owner is not None for n in core(logits)):
            shifted = _made(labels)  # the scores are computed, from distances or products: no layer has their size
        place = shifted if shifted is not None else made
        if place is None or id(place[0]) in told:
            continue
        told.add(id(place[0]))
        text = f"the labels go from {reach[0]} to {reach[1]}, and the network has {count} outputs (0 to {count - 1})"
        yield Answer(place, text, tuple(p for p in (made, loss.place) if p is not None and p is not place))


def blank_used(run: Rehearsing) -> Iterator[Answer]:
    """Targets of a connectionist loss in which the number of the blank occurs."""
    for loss in losses(run, "ctc_loss"):
        blank = loss.owner.options.get("blank", 0) if loss.owner is not None else loss.options.get("blank", 0)
        targets = loss.inputs[1] if len(loss.inputs) > 1 else None
        reach = span(targets)
        if reach is None and isinstance(blank, int) and (table := _looked_up(run, targets, blank)) is not None:
            text = f"a symbol has the number {blank} here, which is the blank: it can never be told"
            yield Answer(table, text, (loss.place,) if loss.place is not None else ())
            return
        if not isinstance(blank, int) or not isinstance(targets, Node) or reach is None:
            continue
        if reach[0] <= blank <= reach[1] and reach[0] < reach[1]:
            place = shift(targets) or _made(targets) or loss.place
            text = f"the targets go from {reach[0]} to {reach[1]}, and {blank} is the blank: it stands for no symbol"
            if place is not None:
                yield Answer(place, text, (loss.place,) if loss.place is not None else ())
                return


def _looked_up(run: Rehearsing, targets: Value, blank: int) -> Place | None:
    """Where the table was made in which the targets are looked up, and a letter or digit has the blank's number."""
    for node in ancestors(targets, through=lambda n: n.op not in ("item", "getitem")):
        table = node.inputs[0] if node.op in ("item", "getitem") and node.inputs else None
        if not isinstance(table, Table) or table.more or node.place is None:
            continue
        symbols = [k for k, v in table.entries.items() if v == blank and isinstance(k, str) and k.isalnum()]
        numbers = all(isinstance(v, int) for v in table.entries.values())
        if symbols and numbers and len(table.entries) > 1:
            at = node.place[0]
            name = at.value if isinstance(at, ast.Subscript) else None
            found = run.project.lookup(name.id, node.place[1]) if isinstance(name, ast.Name) else []
            return (found[0].node, found[0].scope) if len(found) == 1 else node.place
    return None


def _made(labels: Node) -> Place | None:
    """Where labels become a tensor."""
    walked = ancestors(labels, through=lambda n: n.op in KEEPS or n.op in STRUCTURE or n.op in (*JOINS, "either"))
    return next((n.place for n in walked if n.op in ("tensor", "as_tensor", "from_numpy", *INTEGERS)), None)


def _outputs(value: Value) -> int | None:
    """How many classes the scores are for: along the second axis, or the only one."""
    if not isinstance(value, Node) or value.shape.open or not value.shape.dims:
        return None
    count = value.shape.dims[1] if len(value.shape.dims) > 1 else value.shape.dims[0]
    return count if isinstance(count, int) and count > 1 else None


def _ignored(loss: Node, reach: Span, count: int) -> bool:
    """True where the label beyond the outputs is one that the loss passes over."""
    ignored = loss.get("ignore_index", None, DEFAULT)
    if loss.owner is not None:
        ignored = loss.owner.options.get("ignore_index", ignored)
    if ignored in (None, DEFAULT):
        return False
    return not isinstance(ignored, int) or ignored in reach or not 0 <= ignored < count


def span(value: Value, depth: int = 0) -> Span | None:
    """The least and the largest of whole numbers that really occur; None where they aren't known."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value, value
    if isinstance(value, tuple | Items):
        return _listed(value, depth)
    if not isinstance(value, Node) or depth > MAX_DEPTH or value.op in FLOATS:
        return None
    first, second = (*value.inputs, None, None)[:2]
    if value.op in INTEGERS:
        return _drawn(value)
    if value.op == "sample" and isinstance(first, Items):
        return _of_a_range(first)
    if value.op == "either" or (value.op in JOINS and isinstance(first, tuple | Items)):
        held = value.inputs if value.op == "either" else tuple(first.items) if isinstance(first, Items) else first
        return _listed(held, depth)  # further elements are of the same kind
    if value.op in FLAGS:
        return 0, 1
    if value.op in ("argmax", "argmin"):
        return _picked(value)
    if value.op in ("add", "sub", "mul") and len(value.inputs) == 2:
        return _computed(value.op, span(first, depth + 1), span(second, depth + 1))
    if value.op in ("remainder", "mod", "fmod") and isinstance(second, int) and second > 0:
        inner = span(first, depth + 1)
        return (0, second - 1) if inner is not None and inner[1] - inner[0] >= second - 1 else None
    if value.op in ("getitem", "masked_select", "index_select", "take") and _chosen(first, second):
        return None
    if value.op == "getitem" and isinstance(second, tuple) and (column := _column(first, second)) is not None:
        return column[0] if len(column) == 1 else None
    if value.op == "counter" and value.full == "builtins.range" and len(value.inputs) < 3:
        ends = (0, *value.inputs)[-2:]
        return (ends[0], ends[1] - 1) if all(isinstance(e, int) for e in ends) and ends[0] < ends[1] - 1 else None
    if value.op in KEEPS or value.op in STRUCTURE:
        source = first if value.op != "batch" else next(iter(parts(value.inputs)), None)
        return span(source, depth + 1)
    return None


def _column(base: Value, index: tuple[Value, ...]) -> list[Span] | None:
    """Of one column of values that were put side by side, or of a list of rows: what that column holds (nothing where
    this isn't known); None where it is no such table."""
    for _ in range(MAX_DEPTH):
        if not isinstance(base, Node) or not base.inputs:
            return None
        first = base.inputs[0]
        if base.op in ("stack", "column_stack", "array", "tensor", "asarray") and isinstance(first, tuple | Items):
            break
        if base.op not in KEEPS and base.op not in STRUCTURE:
            return None
        base = first
    items = first.items if isinstance(first, Items) else first if isinstance(first, tuple) else ()
    at = index[-1]
    if len(index) != 2 or not isinstance(at, int) or not isinstance(base, Node) or not items:
        return []
    axis = base.options.get("dim", base.options.get("axis", (*base.inputs, 0)[1]))
    if base.op in ("stack", "column_stack"):
        beside = base.op == "column_stack" or axis in (1, -1)
        return [s for s in (span(items[at]),) if s is not None] if beside and -len(items) <= at < len(items) else []
    rows = [i for i in items if isinstance(i, tuple) and -len(i) <= at < len(i)]
    held = [span(r[at]) for r in rows]
    known = [s for s in held if s is not None]
    if len(rows) != len(items) or len(known) != len(held):
        return []
    return [(min(s[0] for s in known), max(s[1] for s in known))]


def _chosen(base: Value, index: Value) -> bool:
    """True where not every value need come along: a mask picks some, or numbers are looked up in a table."""
    if not isinstance(index, Node):
        return False
    masks = any(n.op in MASKS for n in near(index, 6))
    written = isinstance(base, Node) and bool(base.inputs) and isinstance(base.inputs[0], Items | tuple)
    return masks or (written and base.op in ("tensor", "array", "asarray", "as_tensor"))


def _listed(value: Value, depth: int) -> Span | None:
    items = value.items if isinstance(value, Items) else value
    drawn = all(isinstance(i, Node) and i.op in ("sample", "getitem") for i in items)
    if not items or (isinstance(value, Items) and value.more and not drawn):
        return None
    spans = [span(i, depth + 1) for i in items]
    known = [s for s in spans if s is not None]
    return (min(s[0] for s in known), max(s[1] for s in known)) if len(known) == len(spans) else None


def _of_a_range(numbers: Items) -> Span | None:
    """Of one number of a range, or of a list of it, that is drawn."""
    counted = next((i for i in numbers.items if isinstance(i, Node) and i.op == "counter"), None)
    whole = [i for i in numbers.items if isinstance(i, int)]
    last = span(counted) if counted is not None else None
    return (min(whole[0], last[0]), last[1]) if last is not None and whole else last


def _drawn(node: Node) -> Span | None:
    """Of ``randint`` in torch, numpy and Python: the ends; where a single one is given, from zero."""
    generator = node.owner is not None or node.op == "integers" or node.full.startswith(("numpy", "torch", "random"))
    numbers = [i for i in node.inputs[: len(node.inputs) - len(node.options)] if not isinstance(i, Obj)]
    numbers = numbers[1:] if numbers and isinstance(numbers[0], Node) else numbers  # a generator
    low, high = node.options.get("low"), node.options.get("high")
    plain = [i for i in numbers if isinstance(i, int)]
    if high is None and len(plain) > 1 and numbers[:2] == plain[:2]:
        low, high = plain[0], plain[1]
    elif high is None and plain and numbers[0] is plain[0]:
        low, high = (0, plain[0]) if low is None else (low, plain[0])
    low = 0 if low is None else low
    if not generator or not isinstance(low, int) or not isinstance(high, int):
        return None
    last = high if node.full == "random.randint" or node.options.get("endpoint") is True else high - 1
    return (low, last) if last > low else None


def _picked(node: Node) -> Span | None:
    """Of the place of the largest: all places along an axis of known size."""
    base = node.inputs[0] if node.inputs and isinstance(node.inputs[0], Node) else None
    axis = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else None))
    dims = base.shape.dims if base is not None and not base.shape.open else ()
    if not isinstance(axis, int) or not -len(dims) <= axis < len(dims):
        return None
    size = dims[axis]
    return (0, size - 1) if isinstance(size, int) and size > 1 else None


def _computed(op: str, one: Span | None, other: Span | None) -> Span | None:
    """Of two numbers that do not depend on each other; known only where one of them is a plain number."""
    if one is None or other is None or (one[0] != one[1] and other[0] != other[1]):
        return None
    if op == "add":
        return one[0] + other[0], one[1] + other[1]
    if op == "sub":
        return one[0] - other[1], one[1] - other[0]
    ends = [a * b for a in one for b in other]
    return min(ends), max(ends)


def shift(labels: Node) -> Place | None:
    """Where a number is added to the labels, or taken off; the last such place."""
    node: Value = labels
    for _ in range(MAX_DEPTH):
        if not isinstance(node, Node):
            return None
        if node.op in ("add", "sub", "mul"):
            numbers = [i for i in node.inputs[:2] if isinstance(i, int)]
            if numbers and numbers[0] != (1 if node.op == "mul" else 0):
                return node.place
            node = next((i for i in node.inputs[:2] if isinstance(i, Node)), None)
        elif node.op in INTEGERS and (node.options.get("low") or (span(node) or (0, 0))[0]):
            return node.place
        else:
            node = next(iter(parts(node.inputs[:1])), None) if node.op in KEEPS or node.op in STRUCTURE else None
    return None


def _layer(logits: Node) -> Place | None:
    """Where the layer is made that gives the scores."""
    made = core(logits)
    owner = made[0].owner if len(made) == 1 else None
    return owner.place if owner is not None and owner.place is not None else logits.place
