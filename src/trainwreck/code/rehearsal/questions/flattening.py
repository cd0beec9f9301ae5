"""Outputs and targets that are flattened for a loss: does the same axis come first in both?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards, given, losses, trained
from trainwreck.code.rehearsal.questions.signs import ERRORS

FLATTENS = frozenset(["reshape", "view", "flatten", "ravel"])
SWAPS = frozenset(["transpose", "swapaxes", "swapdims"])
SAME = frozenset(
    """linear layer_norm dropout relu gelu silu tanh sigmoid softmax log_softmax contiguous clone to float double long
    int detach add sub mul div embedding lstm gru rnn part either transformerencoder transformerdecoder scale neg
    requires_grad_ cuda cpu masked_fill clamp pow type data leaky_relu elu rms_norm""".split()
)
"""What leaves the axes in their places, but for the last."""
SOURCES = frozenset(["stack", "batch"])
WRITTEN_OUT = frozenset(["tensor", "as_tensor", "array", "asarray"])
"""What makes an array of lists."""
MAX_DEPTH = 120
MAX_ROWS = 400
"""Values that are looked at behind what is stacked."""

Source = tuple[str, int]
"""What the data come from, and which of its axes is meant."""


def orders_apart(run: Rehearsing) -> Iterator[Answer]:
    """Of outputs the time comes first, of targets the batch, or the reverse: each is compared with another's target."""
    for node in losses(run, *ERRORS):
        output, target = _flattened(given(node, "input", 0)), _flattened(given(node, "target", 1))
        if output is None or target is None or output.place is None or target.place is None:
            continue
        one, other = _slowest(output), _slowest(target)
        if one is None or other is None or one[0] != other[0]:
            one, other = _samples_at(run, output), _samples_at(run, target)
        if one is None or other is None or {one[1], other[1]} != {0, 1}:
            continue
        text = "outputs and targets are flattened in another order: what is compared does not belong together"
        joined = output.inputs[0]
        made = isinstance(joined, Node) and joined.op == "stack" and joined.place is not None
        place = joined.place if made and isinstance(joined, Node) and joined.place is not None else target.place
        yield Answer(place, text, (output.place, target.place))


COMPARES = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits"])


def axes_swapped(run: Rehearsing) -> Iterator[Answer]:
    """Of what is compared element by element, the samples lie along another axis of the output than of the target."""
    from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis

    for node in losses(run, *COMPARES):
        output, target = given(node, "input", 0), given(node, "target", 1)
        if not isinstance(output, Node) or not isinstance(target, Node) or node.place is None:
            continue
        if output.shape.open or target.shape.open or len(output.shape.dims) != len(target.shape.dims):
            continue
        one, other = sample_axis(run, output), sample_axis(run, target)
        if {one, other} == {0, 1} and len(output.shape.dims) >= 2:
            place = output.place if output.op == "stack" and output.place is not None else node.place
            text = f"the samples lie along axis {one} of the output, and along axis {other} of the target"
            yield Answer(place, text, (node.place,))


def rows_apart(run: Rehearsing) -> Iterator[Answer]:
    """Arrays from which one index picks rows for one loss, flattened of two axes that stand in another order.

    (time, copy) became rows here and (copy, time) there: row 5 of one is another moment than row 5 of the other."""
    for event in backwards(run):
        picked: dict[int, list[Node]] = {}
        for node in ancestors(event.subject):
            index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
            if isinstance(index, Node) and index.op not in ("counter", "compare"):
                picked.setdefault(id(index), []).append(node)
        for nodes in picked.values():
            orders: dict[int, list[Node]] = {0: [], 1: []}
            for node in nodes:
                flat = _flattened(node.inputs[0])
                source = _slowest(flat) if flat is not None and _of_lists(flat) else None
                if flat is not None and source is not None and source[1] in orders and flat.place is not None:
                    known = orders[source[1]]
                    known += [flat] if not any(flat is k for k in known) else []
            if not orders[0] or not orders[1]:
                continue
            few, many = sorted(orders.values(), key=len)
            places = [_asked(k, [*few, *many]) for k in (few[0], many[0])]
            if places[0] is not None:
                text = "one index picks rows of arrays that were flattened in another order: what it picks is no pair"
                yield Answer(places[0], text, tuple(p for p in (places[1], event.place) if p is not None))
                return


UNTIL = ("param", "stack", "batch", "embedding", "element", "setitem")


def _of_lists(flat: Node) -> bool:
    """True for arrays whose first axis is that of the moments, gathered in a list or filled one by one."""
    walked = list(ancestors(flat, through=lambda n: n.op not in UNTIL))
    stacks = [n for n in walked if n.op == "stack"]
    return (
        (bool(stacks) or any(n.op == "setitem" and _filled(n, 0) is not None for n in walked))
        and not any(n.op in ("batch", "element") for n in walked)
        and all(n.get("dim", 1, 0) == 0 and n.options.get("axis", 0) == 0 for n in stacks)
    )


def _asked(flat: Node, others: list[Node]) -> Place | None:
    """The place of a flattening; the call, where one function makes several of them: it is given another order."""
    same = [o for o in others if o.place is not None and flat.place is not None and o.place[0] is flat.place[0]]
    return flat.stack[-1] if len(same) > 1 and flat.stack else flat.place


def _samples_at(run: Rehearsing, flat: Node) -> Source | None:
    """Which of the first two axes that are made one is that of the samples."""
    from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis

    inner = flat.inputs[0]
    if not isinstance(inner, Node) or inner.shape.open or flat.op == "rearrange":
        return None
    kept = 0 if flat.shape.open else len(flat.shape.dims)
    axis = sample_axis(run, inner) if len(inner.shape.dims) == kept + 1 and kept <= 2 else None
    return ("samples", axis) if axis is not None else None


def _flattened(value: Value) -> Node | None:
    """The operation that makes one axis of the first two."""
    at = value
    for _ in range(12):
        if not isinstance(at, Node) or not at.inputs:
            return None
        if at.op in FLATTENS or at.op == "rearrange":
            return at
        if at.op not in SAME or at.op in ("linear", "part", "lstm", "gru", "rnn", "embedding"):
            return None
        at = at.inputs[0]
    return None


def _slowest(flat: Node) -> Source | None:
    """Which axis of the data is the slowest one in a flattened value."""
    inner = flat.inputs[0]
    if not isinstance(inner, Node):
        return None
    if inner.shape.open:
        return _axis(inner, 0, {}, 0) if from_first(flat) else None
    kept = 0 if flat.shape.open else len(flat.shape.dims)
    if flat.op == "rearrange":
        return _by_pattern(flat, inner)
    if len(inner.shape.dims) != kept + 1 or kept > 2:
        return None
    return _axis(inner, 0, {}, 0)


def from_first(flat: Node) -> bool:
    """True where the first axis is made of the first ones, however many there are: ``flatten(0, 1)``, ``view(-1)``."""
    rest = [i for i in (*flat.inputs[1:], *flat.options.values())]
    if flat.op in ("flatten", "ravel"):
        return not rest or rest[0] == 0
    sizes = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], tuple) else rest
    return bool(sizes) and sizes[0] == -1 and len(sizes) <= 2


def _by_pattern(flat: Node, inner: Node) -> Source | None:
    """``"t b v -> (t b) v"``: the first letter of the group."""
    pattern = flat.inputs[1] if len(flat.inputs) > 1 else None
    if not isinstance(pattern, str) or pattern.count("->") != 1 or "..." in pattern:
        return None
    left, right = (side.strip() for side in pattern.split("->"))
    if "(" in left or not right.startswith("("):
        return None
    first = right[1:].split()[0].rstrip(")")
    letters = left.split()
    return _axis(inner, letters.index(first), {}, 0) if first in letters else None


def _axis(value: Value, axis: int, known: dict[tuple[int, int], Source | None], depth: int) -> Source | None:
    """Where an axis of a value comes from; None where it is not known."""
    if not isinstance(value, Node) or depth > MAX_DEPTH:
        return None
    key = (id(value), axis)
    if key not in known:
        known[key] = None
        known[key] = _computed(value, axis, known, depth + 1)
    return known[key]


def _computed(node: Node, axis: int, known: dict[tuple[int, int], Source | None], depth: int) -> Source | None:
    if node.op in SOURCES:
        rows = _rows(node, known, depth)
        return ("batch", axis) if not rows else rows.pop() if axis == 0 and len(rows) == 1 else None
    first = node.inputs[0] if node.inputs else None
    if node.op in WRITTEN_OUT and node.place is not None and not isinstance(first, Node):
        return f"rows {id(node.place[0])}", axis  # what one line makes has its axes in one order
    if node.op == "getitem" and isinstance(first, Node):
        return _indexed(node, first, axis, known, depth)
    if node.op in ("cat", "concat") and node.get("dim", 1, 0) == -1:
        joined = [n for n in parts(first) if axis < _known_axes(n) - 1]
        found = {source for n in joined if (source := _axis(n, axis, known, depth)) is not None}
        return found.pop() if len(found) == 1 else None
    if node.op in ("matmul", "bmm"):
        return _axis(first, axis, known, depth) if axis == 0 else None
    if node.op in ("setitem", "zeros_like", "empty_like", "ones_like", "flip", "cumsum"):
        return _axis(first, axis, known, depth) or (_filled(node, axis) if node.op == "setitem" else None)
    before = moved(node, axis)
    if before is not None:
        return _axis(first, before, known, depth)
    if node.op in ("view", "reshape") and isinstance(first, Node) and axis == 0:
        # a split or a merge of later axes: the first one stays
        same = node.shape.dims[:1] == first.shape.dims[:1] and not node.shape.open and not first.shape.open
        later = len(node.shape.dims) > 1 and len(first.shape.dims) > 2
        return _axis(first, 0, known, depth) if same and later else None
    if node.op not in SAME:
        return None
    count = len(node.shape.dims)
    if node.op not in ("embedding", "part", "either") and not node.shape.open and axis == count - 1:
        return None
    sides = [n for n in node.inputs if isinstance(n, Node) and n.op not in ("param", "buffer")]
    whole = [n for n in sides if n.shape.dims and len(n.shape.dims) == count] or sides[:1]
    if node.op in ("embedding", "lstm", "gru", "rnn", "part", "linear", "layer_norm"):
        whole = sides[:1]
    found = {source for n in whole if (source := _axis(n, axis, known, depth)) is not None}
    return found.pop() if len(found) == 1 else None


def _filled(node: Node, axis: int) -> Source | None:
    """The axis of an array of constants that is written moment by moment, ``kept[t] = x``: 0 is that of the moments."""
    base = node
    while base.op == "setitem" and base.inputs and isinstance(base.inputs[0], Node):
        base = base.inputs[0]
    index = node.inputs[2] if len(node.inputs) > 2 else None
    picks = list(index) if isinstance(index, tuple) else [index]
    counted = [isinstance(pick, Node) and pick.op == "counter" for pick in picks]
    if base.op not in CONSTANTS or sum(counted) != 1 or axis > 1:
        return None
    return ("filled", axis) if counted.index(True) == 0 else None


CONSTANTS = frozenset(["zeros", "empty", "full", "ones"])


def _known_axes(node: Node) -> int:
    """How many axes a value has at least."""
    if node.op in ("lstm", "gru", "rnn"):
        return 3
    return max(2, len(node.shape.dims) + node.shape.open)


def _indexed(
    node: Node, first: Node, axis: int, known: dict[tuple[int, int], Source | None], depth: int
) -> Source | None:
    """Parts along the axes, ``x[:, 1:]``: each axis stays where it is. Of the array that is cut, its own axes count."""
    if not sliced_only(node):
        return None
    picks = node.inputs[1] if isinstance(node.inputs[1], tuple) else (node.inputs[1],)
    found = _axis(first, axis, known, depth)
    return found if found is not None else (f"cut {id(first)}", axis) if len(picks) > 1 and axis < 2 else None


def sliced_only(node: Node) -> bool:
    """True for parts along the axes, none of which goes."""
    index = node.inputs[1] if len(node.inputs) > 1 else None
    picks = index if isinstance(index, tuple) else (index,)
    return all(isinstance(pick, Obj) and pick.kind == "builtins.slice" for pick in picks)


def _rows(node: Node, known: dict[tuple[int, int], Source | None], depth: int) -> set[Source]:
    """Of what was made one by one for each row of arrays and put together again: which axis of these the rows are."""
    if node.op != "stack" or not node.inputs or node.get("dim", 1, 0) != 0 or node.options.get("axis", 0) != 0:
        return set()
    made = islice(ancestors(node.inputs[0], through=lambda n: n.op not in ("stack", "param")), MAX_ROWS)
    taken = {(id(n.inputs[0]), axis): n.inputs[0] for n in made if (axis := _one_by_one(n)) is not None}
    return {source for (_, axis), a in taken.items() if (source := _axis(a, axis, known, depth)) is not None}


def _one_by_one(node: Node) -> int | None:
    """Along which axis of an array a loop takes one after the other: ``for row in x``, ``x[k]``, ``x[:, k]``."""
    if node.op == "element" and node.inputs:
        return 0
    if node.op != "getitem" or len(node.inputs) < 2 or not isinstance(node.inputs[0], Node):
        return None
    index = node.inputs[1]
    picks = list(index) if isinstance(index, tuple) else [index]
    counted = [isinstance(pick, Node) and any(n.op == "counter" for n in near(pick, 4)) for pick in picks]
    whole = [p for p in picks if isinstance(p, Obj) and p.kind == "builtins.slice" and set(p.args) == {None}]
    return counted.index(True) if sum(counted) == 1 and len(whole) == len(picks) - 1 else None


def moved(node: Node, axis: int) -> int | None:
    """The place that an axis had before a transposition; None for other operations."""
    first = node.inputs[0] if node.inputs else None
    count = len(first.shape.dims) if isinstance(first, Node) and not first.shape.open else 0
    rest = [i for i in (*node.inputs[1:], *node.options.values())]
    if not count:
        return _moved_unseen(node, axis, rest)
    if node.op in ("t", "T") and count == 2:
        return 1 - axis
    if node.op in SWAPS and len(rest) >= 2 and all(isinstance(r, int) for r in rest[:2]):
        one, other = (int(r) % count for r in rest[:2])
        return other if axis == one else one if axis == other else axis
    if node.op == "permute":
        order = rest[0] if len(rest) == 1 else tuple(rest)
        listed = order.items if isinstance(order, Items) else list(order) if isinstance(order, tuple) else []
        if len(listed) == count and all(isinstance(a, int) for a in listed):
            return int(listed[axis]) % count
    return None


def _moved_unseen(node: Node, axis: int, rest: list[Value]) -> int | None:
    """The same where it isn't known how many axes there are: a swap of two that are counted from the left."""
    if node.op in ("t", "T") and axis < 2:
        return 1 - axis
    if node.op in SWAPS and len(rest) == 2 and all(isinstance(r, int) and r >= 0 for r in rest):
        return rest[1] if axis == rest[0] else rest[0] if axis == rest[1] else axis
    return None


def read_in_two_orders(run: Rehearsing) -> Iterator[Answer]:
    """Of arrays that one line makes, one layer takes the first axis for the samples, another one for the time."""
    taken: dict[Source, dict[bool, Node]] = {}
    for node in trained(run):
        owner = node.owner
        if node.op not in ("lstm", "gru", "rnn") or owner is None or not node.inputs:
            continue
        first = owner.get("batch_first", 4, False)
        source = _axis(node.inputs[0], 0, {}, 0)
        if source is None or not source[0].startswith("rows") or not isinstance(first, bool):
            continue
        taken.setdefault(source, {})[first] = node
    for found in taken.values():
        owner = found[False].owner if len(found) > 1 else None
        if owner is not None and owner.place is not None:
            text = "this layer expects the time first, and it is given what another layer takes with the samples first"
            yield Answer(owner.place, text, tuple(p for p in (found[True].place,) if p is not None))
            return
