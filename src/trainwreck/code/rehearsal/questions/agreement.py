"""Does an evaluation read a network's outputs as its loss taught them: along the same axis, on the same scale?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value, candidates
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.factors import arguments
from trainwreck.code.rehearsal.questions.roles import JOINS, core, given, trained, users
from trainwreck.code.rehearsal.questions.scores import compared
from trainwreck.core.row import Row

SOFT = frozenset(["softmax", "log_softmax"])
CHOICES = frozenset(["argmax", "max"])
PASSES = frozenset(
    ["float", "double", "to", "cpu", "detach", "numpy", "clone", "log_softmax", "softmax", "sigmoid", "contiguous"]
)
SCALES = frozenset(["div", "mul"])
SWAPS = frozenset(["transpose", "swapaxes", "swapdims"])
SORTS = frozenset(["sort", "argsort", "topk"])
TESTS = frozenset(["gt", "ge", "lt", "le"])
HALF = 0.5
MAX_STEPS = 14

Output = tuple[int, int]
"""A module (by ``id``) and which of its outputs is meant."""


class Lesson(Row):
    """Along which axis a loss compares the scores, and how many axes there are.

    From the right (1 is the last); from the left (-1 is the first) where it isn't known how many there are."""

    axis: int
    least: int
    whole: bool
    """``least`` is the number of axes, not only the least that there can be."""


def another_axis(run: Rehearsing) -> Iterator[Answer]:
    """The largest, or the order, of scores is taken along another axis than the one the loss compares them along."""
    yield from _elsewhere(run, CHOICES)


def softened_along_another(run: Rehearsing) -> Iterator[Answer]:
    """Outside of training a softmax runs along another axis than the one the loss compares the scores along."""
    yield from _elsewhere(run, SOFT)


def _elsewhere(run: Rehearsing, asked: frozenset[str]) -> Iterator[Answer]:
    outputs = _outputs(run)
    lessons: dict[Output, set[Lesson]] = {}
    for node in trained(run):
        if node.op in ("cross_entropy", "nll_loss") or node.op in SOFT:
            for output, lesson in _lessons(node, outputs):
                lessons.setdefault(output, set()).add(lesson)
    if not lessons:
        return
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in asked or node.grad or node.place is None or not node.inputs:
            continue
        dim = along(node)
        if not isinstance(dim, int) or isinstance(dim, bool) or id(node.place[0]) in told:
            continue
        if node.op not in SOFT and not compared(run, node):
            continue
        found = _source(node.inputs[0], outputs)
        taught = lessons.get(found[0], set()) if found is not None else set()
        if found is None or len({lesson.axis for lesson in taught}) != 1:
            continue
        lesson = max(taught, key=lambda one: (one.whole, one.least))
        known = node.inputs[0].shape if isinstance(node.inputs[0], Node) else None
        left = lesson.least - found[1]
        whole = lesson.whole
        if known is not None and not known.open and known.dims:
            left, whole = len(known.dims), True
        if lesson.axis < 0:
            if found[1] or dim < 0 or dim == -lesson.axis - 1:
                continue
        elif not _apart(dim, lesson.axis, left, whole):
            continue
        told.add(id(node.place[0]))
        text = f"this goes along axis {dim}, and the loss compares the scores along another one"
        yield Answer(node.place, text)


def _apart(dim: int, axis: int, left: int, whole: bool) -> bool:
    """True where ``dim`` is surely not the axis that is meant."""
    if axis < 1 or left < 1:
        return False
    if dim < 0:
        return -dim != axis
    return left - dim != axis if whole else left - dim > axis


def _outputs(run: Rehearsing) -> dict[int, Output]:
    """What calls of networks gave: which module it is, and which of its outputs."""
    if "outputs-of-modules" not in run.memo:
        found: dict[int, Output] = {}
        for event in run.tape:
            if event.name != "forward" or not isinstance(event.subject, Obj):
                continue
            if event.subject.cls is None and event.subject.name != "Sequential":
                continue
            results = event.result if isinstance(event.result, tuple) else (event.result,)
            whole = event.subject
            while whole.copy_of is not None:  # a copy gives what the original gives
                whole = whole.copy_of
            for number, result in enumerate(results):
                if isinstance(result, Node):
                    found[id(result)] = (id(whole), number)
        run.memo["outputs-of-modules"] = found
    outputs: dict[int, Output] = run.memo["outputs-of-modules"]
    return outputs


def _source(value: Value, outputs: dict[int, Output]) -> tuple[Output, int] | None:
    """The output that ``value`` is cut from, and how many axes were dropped."""
    dropped = 0
    at = value
    for _ in range(MAX_STEPS):
        if not isinstance(at, Node):
            return None
        if id(at) in outputs:
            return outputs[id(at)], dropped
        first = at.inputs[0] if at.inputs else None
        if at.op == "either":
            at = next((c for c in candidates(at) if isinstance(c, Node)), None)
        elif at.op == "getitem":
            index = at.inputs[1] if len(at.inputs) > 1 else None
            picks = index if isinstance(index, tuple) else (index,)
            while len(picks) > 2 and isinstance(picks[-1], Obj) and all(a is None for a in picks[-1].args):
                picks = picks[:-1]  # all of the last axis
            if any(not isinstance(p, int | Obj) or isinstance(p, bool) for p in picks) or len(picks) > 2:
                return None
            dropped += sum(isinstance(p, int) for p in picks)
            at = first
        elif at.op in PASSES or (at.op in SCALES and len(at.inputs) > 1 and isinstance(at.inputs[1], int | float)):
            at = first
        else:
            return None
    return None


def _lessons(node: Node, outputs: dict[int, Output]) -> Iterator[tuple[Output, Lesson]]:
    scores = given(node, "input", 0) if node.op not in SOFT else node.inputs[0]
    if not isinstance(scores, Node):
        return
    if node.op in SOFT:
        dim = along(node)
        found = _source(scores, outputs)
        rank = len(scores.shape.dims) if not scores.shape.open else 0
        if found is None or found[1] or not isinstance(dim, int) or isinstance(dim, bool) or dim == 0:
            return  # the first axis is that of the samples: another rule speaks of such a softmax
        axis = -dim if dim < 0 else rank - dim if rank else -dim - 1
        yield found[0], Lesson(axis, rank or max(2, -dim), bool(rank))  # of several samples
        return
    if node.op == "nll_loss":
        return
    rows = _rows(scores)
    if rows is not None:
        found = _source(rows, outputs)
        if found is not None and not found[1]:
            rank = len(rows.shape.dims) if not rows.shape.open else 0
            yield found[0], Lesson(1, rank or 3, bool(rank))
        return
    turned = _turned(scores)
    if turned is not None:
        found = _source(turned[0], outputs)
        if found is not None and not found[1]:
            yield found[0], turned[1]
        return
    found = _source(scores, outputs)
    if found is None or found[1] or scores.shape.open or len(scores.shape.dims) < 2:
        return
    rank = len(scores.shape.dims)
    yield found[0], Lesson(rank - 1, rank, True)


def _rows(scores: Node) -> Node | None:
    """What is flattened to rows of scores, its last axis kept: ``flatten(0, 1)``, ``view(-1, classes)``."""
    first = scores.inputs[0] if scores.inputs else None
    rest = arguments(scores)
    if not isinstance(first, Node):
        return None
    if scores.op == "flatten" and tuple(rest[:2]) in ((0, 1), (0, -2)):
        return first
    sizes = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) else tuple(rest)
    if scores.op in ("view", "reshape") and len(sizes) == 2 and sizes[0] == -1:
        last = first.shape.dims[-1] if first.shape.dims else None
        return first if isinstance(sizes[1], Node) or sizes[1] == last else None
    return None


def _turned(scores: Node) -> tuple[Node, Lesson] | None:
    """What is turned so that its classes lie on axis 1, and where they lay: ``scores.transpose(1, 2)``."""
    first = scores.inputs[0] if scores.inputs else None
    if scores.op not in (*SWAPS, "permute", "movedim", "moveaxis") or not isinstance(first, Node):
        return None
    rank = len(first.shape.dims)
    rest = arguments(scores)
    order = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) else tuple(rest)
    if first.shape.open or rank < 2 or not all(isinstance(o, int) and -rank <= o < rank for o in order):
        return None
    order = tuple(o % rank for o in order)
    axes = list(range(rank))
    if scores.op == "permute" and len(order) == rank:
        axes = list(order)
    elif scores.op in SWAPS and len(order) == 2:
        axes[order[0]], axes[order[1]] = axes[order[1]], axes[order[0]]
    elif scores.op in ("movedim", "moveaxis") and len(order) == 2:
        axes.insert(order[1], axes.pop(order[0]))
    else:
        return None
    return first, Lesson(rank - axes[1], rank, True)


def cut_along_another(run: Rehearsing) -> Iterator[Answer]:
    """What is sorted along one axis is cut to the first ones along another: they are not the best of anything."""
    table = users(run)
    for node in run.nodes:
        if node.op not in SORTS or node.place is None:
            continue
        dim = along(node) if node.op != "topk" else (*arguments(node)[1:], -1)[0]
        if dim not in (0, 1) or isinstance(dim, bool):
            continue
        near = [u for u in table.get(id(node), ()) if u.op in ("part", "getitem", "attribute")]
        near += [u for one in near for u in table.get(id(one), ()) if u.op == "getitem"]
        if any(_first_ones(user) == 1 - dim for user in near):
            axis = 1 - dim
            yield Answer(node.place, f"this is sorted along axis {dim}, and its first ones are taken along axis {axis}")
            return


def _first_ones(node: Node) -> int | None:
    """The axis of which ``x[:, :k]`` keeps the first ones, where all of the other are kept."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    picks = index if isinstance(index, tuple) else (index,)
    if len(picks) > 2 or not all(isinstance(p, Obj) and p.kind == "builtins.slice" for p in picks):
        return None
    ends = [p.args for p in picks if isinstance(p, Obj)]
    cut = [n for n, (start, end, step) in enumerate(ends) if start in (None, 0) and end is not None and step is None]
    return cut[0] if len(cut) == 1 and all(e == (None, None, None) for n, e in enumerate(ends) if n != cut[0]) else None


def one_sum_twice(run: Rehearsing) -> Iterator[Answer]:
    """Of a table of counts the sums along one axis are added to themselves: those along the other are meant."""
    for node in run.nodes:
        if node.op != "add" or node.grad or node.place is None or len(node.inputs) != 2:
            continue
        one, other = node.inputs
        if not isinstance(one, Node) or not isinstance(other, Node) or one is other:
            continue
        if {one.op, other.op} != {"sum"} or not one.inputs or not other.inputs:
            continue
        if not isinstance(along(one), int) or along(one) != along(other):
            continue
        if one.inputs[0] is other.inputs[0] and one.place is not None and one.place is not other.place:
            yield Answer(node.place, f"the sums along axis {along(one)} are added to themselves, not to the others")
            return


# ---------------------------------------------------------------------- thresholds
def another_scale(run: Rehearsing) -> Iterator[Answer]:
    """Raw outputs, of which the loss takes the sigmoid itself, are held against 0.5 when they are judged."""
    outputs = _outputs(run)
    raw: dict[Output, bool] = {}
    for node in trained(run):
        if node.op in ("binary_cross_entropy_with_logits", "binary_cross_entropy"):
            for output in _cut_from(given(node, "input", 0), outputs):
                raw[output] = raw.get(output, True) and node.op.endswith("logits")
    if not outputs:
        return
    table = users(run)
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in TESTS or node.place is None or len(node.inputs) < 2 or id(node.place[0]) in told:
            continue
        one, other = node.inputs[:2]
        bound, scores = (one, other) if isinstance(one, int | float) else (other, one)
        if isinstance(bound, bool) or bound not in (0, HALF) or not isinstance(scores, Node):
            continue
        if bound == 0:
            if _above(node, scores) and _ends(node, table) and _of_output(scores, outputs):
                told.add(id(node.place[0]))
                yield Answer(node.place, "0 is a bound for raw outputs, and these are probabilities: all are above it")
            continue
        found = _cut_from(scores, outputs)
        if not found or any(output not in raw for output in found) or not _ends(node, table):
            continue
        if all(raw[output] for output in found):
            told.add(id(node.place[0]))
            text = "0.5 is a bound for probabilities, and these are the outputs before the sigmoid: theirs is 0"
            yield Answer(node.place, text)


def _above(node: Node, scores: Node) -> bool:
    """True for ``sigmoid(z) > 0``."""
    greater = node.op in ("gt", "ge") if node.inputs[0] is scores else node.op in ("lt", "le")
    return greater and bool(core(scores)) and all(n.op in ("sigmoid", "softmax") for n in core(scores))


def _of_output(scores: Node, outputs: dict[int, Output]) -> bool:
    return any(bool(_cut_from(n.inputs[0], outputs)) for n in core(scores) if n.inputs)


def _ends(node: Node, table: dict[int, list[Node]]) -> bool:
    """True where the test is counted or compared, not a mask that picks among values of the training."""
    return not node.grad and not any(user.grad for user in table.get(id(node), ()))


def _cut_from(value: Value, outputs: dict[int, Output], depth: int = 0) -> set[Output]:
    """The outputs that ``value`` is selected from; empty where anything else goes in."""
    found: set[Output] = set()
    for node in parts(value):
        if id(node) in outputs:
            found.add(outputs[id(node)])
            continue
        if depth > MAX_STEPS:
            return set()
        first = node.inputs[0] if node.inputs else None
        if node.op == "either":
            inner = [_cut_from(c, outputs, depth + 1) for c in candidates(node) if c is not None]
        elif node.op in JOINS and first is not None:
            inner = [_cut_from(c, outputs, depth + 1) for c in parts(first)]
        elif node.op in ("getitem", "squeeze", "view", "reshape", "flatten", "ravel", "float", "to", "cpu", "detach",
                         "numpy", "element", "part", "item", "clone", "double"):  # fmt: skip
            inner = [_cut_from(first, outputs, depth + 1)]
        else:
            return set()
        if not inner or not all(inner):
            return set()
        found |= set().union(*inner)
    return found


__all__ = ["another_axis", "another_scale", "cut_along_another", "one_sum_twice"]
