"""Rows that may hold several ones or none, given to a loss that lets the classes of a row compete for one."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.paths import RANDOM
from trainwreck.code.rehearsal.questions.roles import JOINS, RAW, STRUCTURE, bounds, given, loss_place, trained
from trainwreck.code.rehearsal.questions.terms import number_of

THRESHOLDS = frozenset(["lt", "le", "gt", "ge"])
KEEPS = STRUCTURE | {"array", "asarray", "batch", "floattensor", "int", "long", "bool", "stack", "copy", "round"}
MAKERS = frozenset(["tensor", "array", "asarray", "as_tensor", "stack", "vstack", "floattensor"])
COMPETE = frozenset(
    """softmax log_softmax softmin sort argsort max amax min amin argmax argmin topk kthvalue median quantile percentile
    rank cumsum eq one_hot scatter scatter_ multinomial sum mean norm normalize eye""".split()
)
"""What compares the classes of a row with each other: a threshold behind it may leave just one of them."""
COINS = frozenset(["bernoulli", "randint", "integers"])
EMPTY = frozenset(["zeros", "zeros_like", "new_zeros"])
MATRIX = 2
DEEPEST = 30


def classes_compete(run: Rehearsing) -> Iterator[Answer]:
    """A softmax over the classes beside targets of which each is decided for itself: rows do not add up to one."""
    told: set[int] = set()
    for node in trained(run):
        target = _target(node)
        if target is None or target.grad or not _row_of_classes(target):
            continue
        place = loss_place(node) if node.op == "cross_entropy" else node.place
        if place is None or id(place[0]) in told:
            continue
        why = _decided_apart(target) or (
            "each class of it is judged for itself by a sigmoid" if _judged_apart(run, node, target) else ""
        )
        if why:
            told.add(id(place[0]))
            text = f"the classes compete in a softmax here, and a row of the target may have several or none: {why}"
            yield Answer(place, text, (node.place,) if node.place is not None and node.place is not place else ())


def _target(node: Node) -> Node | None:
    """The target of a cross-entropy over axis 1, also of one that is written out."""
    if node.op == "cross_entropy":
        found = given(node, "target", 1)
        return found if isinstance(found, Node) else None
    if node.op != "mul" or len(node.inputs) < MATRIX:
        return None
    for scores, target in (node.inputs[:2], node.inputs[1::-1]):
        if isinstance(scores, Node) and scores.op == "log_softmax" and isinstance(target, Node):
            return target if along(scores) in (1, -1) else None
    return None


def _row_of_classes(target: Node) -> bool:
    """True for samples times classes, of which there are several."""
    sizes = target.shape.dims
    return not target.shape.open and len(sizes) == MATRIX and isinstance(sizes[1], int) and sizes[1] > 1


def _decided_apart(target: Node) -> str:
    """Words where each class of a row is a matter of its own; nothing where that isn't known."""
    found = list(_sources(target))
    words = {_apart(n, target) for n in found}
    return words.pop() if len(words) == 1 else ""


def _sources(value: Value, depth: int = 0) -> Iterator[Node | None]:
    """What the zeros and ones are that are only moved and converted since; None for anything else among them."""
    if not isinstance(value, Node) or depth > DEEPEST:
        yield None
        return
    first = value.inputs[0] if value.inputs else None
    if value.op == "either":
        for one in candidates(value):
            yield from _sources(one, depth + 1)
    elif value.op in (*JOINS, *MAKERS) and isinstance(first, Items | tuple):
        rows = list(first.items if isinstance(first, Items) else first)
        for row in rows or [None]:
            yield from _sources(row, depth + 1)
    elif value.op in KEEPS and isinstance(first, Node):
        yield from _sources(first, depth + 1)
    else:
        yield value


def _apart(node: Node | None, target: Node) -> str:
    if node is None:
        return ""
    width = target.shape.dims[-1]
    if node.op in THRESHOLDS and len(node.inputs) > 1:
        wide = [i for i in node.inputs[:2] if isinstance(i, Node) and i.shape.dims and i.shape.dims[-1] == width]
        if any(n.op in COMPETE for i in node.inputs[:2] for n in parts(i) for n in ancestors(n)) or len(wide) != 1:
            return ""
        drawn = any(n.op in RANDOM and n.shape.dims and n.shape.dims[-1] == width for n in ancestors(wide[0]))
        return "each stands for a threshold of its own" if drawn else ""
    if node.op in COINS and not any(n.op in COMPETE for n in ancestors(node)) and bounds(node).high <= 1:
        return "each is drawn for itself" if node.shape.dims[-1:] == (width,) else ""
    if node.op == "setitem" and _written_often(node):
        return "a loop writes several of them into one row"
    return ""


def _written_often(node: Node) -> bool:
    """True for a row that was zeros before a loop began, each turn of which writes a one into it."""
    value, before = (node.inputs[1] if len(node.inputs) > 1 else None), node.inputs[0]
    if number_of(value) != 1 or not node.turns:
        return False
    chain: list[Node] = [node]
    while isinstance(before, Node) and before.op in ("setitem", "either") and len(chain) < DEEPEST:
        inner = next((c for c in candidates(before) if isinstance(c, Node) and c.op == "setitem"), None)
        if inner is None or number_of(inner.inputs[1]) != 1:
            return False
        chain.append(inner)
        before = inner.inputs[0]
    if not isinstance(before, Node) or before.op not in EMPTY or len(before.shape.dims) != 1 or len(chain) < MATRIX:
        return False
    return len(before.turns) < len(node.turns)


def _judged_apart(run: Rehearsing, loss: Node, target: Node) -> bool:
    """True where ``sigmoid(output) > 0.5`` is what the program takes for its answer, and never a softmax of it."""
    if any(n.op in ("one_hot", "softmax", "eye") for n in ancestors(target)):
        return False
    mine, asked = _head(loss), False
    for node in run.nodes:
        if node.op not in ("sigmoid", "softmax", "log_softmax", "argmax") or node.grad or not node.inputs:
            continue
        if mine is None or _head(node.inputs[0]) is not mine:
            continue
        if node.op != "sigmoid":
            return False
        asked = asked or any(len(n.shape.dims) == MATRIX for n in parts(node.inputs[0]))
    return asked and any(_is_share(n) for n in run.nodes)


def _head(value: Value) -> Obj | None:
    """The layer that the scores come out of."""
    return next((n.owner for n in ancestors(value) if n.op in RAW), None)


def _is_share(node: Node) -> bool:
    """``sigmoid(scores) > 0.5``, for all classes at once."""
    if node.op not in THRESHOLDS or len(node.inputs) < MATRIX or number_of(node.inputs[1]) is None:
        return False
    side = node.inputs[0]
    for _ in range(DEEPEST):
        if not isinstance(side, Node) or not side.inputs:
            return False
        if side.op == "sigmoid":
            return True
        first = side.inputs[0]
        if side.op in JOINS and isinstance(first, Items | tuple):
            rows = list(first.items if isinstance(first, Items) else first)
            side = rows[0] if rows else None
        elif side.op in KEEPS:
            side = first
        else:
            return False
    return False
