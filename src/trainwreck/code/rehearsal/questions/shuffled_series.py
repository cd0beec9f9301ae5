"""Forecasts whose overlapping windows are put in a random order before they are split."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.lags import forecasts_itself, plain
from trainwreck.code.rehearsal.questions.paths import Path, meets
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.smoothing import THROUGH
from trainwreck.code.rehearsal.questions.splits import keys, sides
from trainwreck.code.rehearsal.questions.windows import GATHERS, Window, columns, number, window_of, windows_behind

ORDERS = frozenset(["randperm", "permutation"])


def split_at_random(run: Rehearsing) -> Iterator[Answer]:
    """What lies between two training windows is judged: the network has seen its neighbours on both sides."""
    if not any(n.op in ORDERS for n in run.nodes):
        return
    both = sides(run)
    found: tuple[Node, Place] | None = None
    for _, held in both.held:
        order = _order(held)
        if order is None:
            continue
        other = next((t for t in both.train if t.root is held.root and _order(t) is order and _apart(t, held)), None)
        if other is not None and order.place is not None and not _cut_afterwards(held, order):
            found = (order, order.place)
            break
    if found is None or not (_overlapping(run) or forecasts_itself(run)):
        return
    text = "windows of one series are put in a random order before the split: each judged one overlaps trained ones"
    yield Answer(found[1], text)


def _order(path: Path) -> Node | None:
    """The random order by which a fixed part of the rows was taken."""
    for step in path.steps:
        given = step.index.args if isinstance(step.index, Obj) else (step.index,)
        for index in (n for value in given for n in parts(value)):
            for node in near(index, 12):
                if node.op in ORDERS and not node.turns:
                    return node
    return None


def _apart(train: Path, held: Path) -> bool:
    """True where different parts were taken from the order: not a look at the training data."""
    return keys(train) != keys(held) or {s.key for s in train.steps} != {s.key for s in held.steps}


def _cut_afterwards(path: Path, order: Node) -> bool:
    """True where the order is one of whole series, and the windows are cut out of each afterwards."""
    ordered = alone = False
    for node in path.nodes:
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        along = index[-1] if isinstance(index, tuple) and len(index) > 1 else None
        if ordered and index is not None and (alone or (isinstance(along, Obj) and along.kind == "builtins.slice")):
            return True
        if not ordered and (node.op == "unfold" or ((cut := window_of(node)) is not None and not cut.single)):
            return False  # the windows themselves are ordered, and parts of them taken later
        if any(order is n for n in near(index, 12)):
            ordered, alone = True, isinstance(index, Node) and index.op == "element"
        alone = (alone and node.op not in GATHERS) or (ordered and node.op == "element")
    return False


def _overlapping(run: Rehearsing) -> bool:
    """True for windows that begin one element after another, of a series that they go on in."""
    made = {number(n): n for n in run.nodes if n.op in ("counter", "mul", "index")}
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            targets = [w for node in outside for w in windows_behind(node, learned=False, through=THROUGH)]
            if not targets:
                continue
            for window in (w for node in inside for w in windows_behind(node, learned=True, through=THROUGH)):
                if window.single or any(_strides(made.get(t)) for t in window.first.terms):
                    continue
                if any(_goes_on(window, target) for target in targets):
                    return True
    return False


def _goes_on(window: Window, target: Window) -> bool:
    wanted = plain(target.series)
    gap = target.first.less(window.first)
    return gap is not None and gap > 0 and any(plain(c) is wanted for c in columns(window.series))


def _strides(node: Node | None) -> bool:
    """True for numbers that go on by more than one, or by an amount that isn't known."""
    if node is None:
        return False
    if node.op == "mul":
        return True
    return node.op == "counter" and len(node.inputs) > 2 and node.inputs[2] != 1


__all__ = ["split_at_random"]
