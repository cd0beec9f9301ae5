"""Both sides of a ratio of policies: of the same action, both log-probabilities, and of all of its coordinates."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.roles import core, trained, users

SUMS = frozenset(["sum", "mean", "detach"])
DEEP = 12
CONTINUOUS = frozenset(["Normal", "Beta", "Laplace", "StudentT", "Cauchy", "Gamma", "Uniform"])
"""Distributions that tell the coordinates of an action one by one."""


def _sides(run: Rehearsing) -> Iterator[tuple[Node, Node, Node]]:
    """``exp(new - old)``, of which only the new one hangs on what is trained."""
    told: set[int] = set()
    for node in trained(run):
        inner = node.inputs[0] if node.op == "exp" and node.inputs else None
        if not isinstance(inner, Node) or inner.op != "sub" or len(inner.inputs) < 2 or node.place is None:
            continue
        new, old = inner.inputs[:2]
        known = isinstance(new, Node) and isinstance(old, Node) and new.grad and not old.grad
        if known and isinstance(new, Node) and isinstance(old, Node) and id(node.place[0]) not in told:
            told.add(id(node.place[0]))
            yield node, new, old


def _told_by(value: Value) -> list[Node]:
    """The densities (or entropies) that a value is put together from."""
    found: list[Node] = []
    todo: list[tuple[Value, int]] = [(value, 0)]
    while todo:
        at, depth = todo.pop()
        for node in core(at) if depth < DEEP else ():
            count = 2 if node.op == "setitem" else 1 if node.op in SUMS else 0
            todo += [(i, depth + 1) for i in node.inputs[:count]]
            found += [node] if not count and not any(node is f for f in found) else []
    return found


def other_action(run: Rehearsing) -> Iterator[Answer]:
    """The new side is that of an action drawn just now, the old one that of an action which was kept."""
    for ratio, new, old in _sides(run):
        fresh = [n for n in _told_by(new) if n.op == "log_prob"]
        before = [n for n in _told_by(old) if n.op == "log_prob"]
        if not fresh or not before or ratio.place is None:
            continue
        mine = [_drawn(n) for n in fresh]
        if any(d is None or d.owner is None or n.owner is not d.owner for n, d in zip(fresh, mine, strict=True)):
            continue
        theirs = [_drawn(n) for n in before]
        if all(d is not None and not any(d is m for m in mine) for d in theirs):
            text = "the new log-probability is that of an action drawn just now, the old one that of another action"
            place = next((p for p in reversed(fresh[0].stack) if p[1] is ratio.place[1]), ratio.place)
            yield Answer(place, text, tuple(n.place for n in (ratio, fresh[0]) if n.place is not None))
            return


def _drawn(density: Node) -> Node | None:
    """The draw whose density is asked for."""
    inner = [n for n in _told_by(density.inputs[:1]) if n.op not in EMPTY]
    draws = [n for n in inner if n.op in ("sample", "rsample")]
    return draws[0] if draws and len(draws) == len(inner) else None


EMPTY = frozenset(["zeros", "empty"])
"""Room for what is kept."""


def no_density(run: Rehearsing) -> Iterator[Answer]:
    """What was kept as the old log-probability is an entropy, or the value of a state."""
    for ratio, new, old in _sides(run):
        before = _told_by(old)
        kept = [n for n in before if n.op in ("entropy", "linear")]
        rest = [n for n in before if n.op not in EMPTY and not any(n is k for k in kept)]
        if not kept or rest or not any(n.op == "log_prob" for n in _told_by(new)) or kept[0].place is None:
            continue
        words = "an entropy" if kept[0].op == "entropy" else "the output of a layer"
        text = f"{words} was kept for the old log-probability that this is compared with"
        writes = [n for n in ancestors(old, through=lambda n: n.op not in ("entropy", "linear")) if n.op == "setitem"]
        writes = [n for n in writes if any(k is t for k in kept for t in _told_by(n.inputs[1]))]
        place = next((n.place for n in writes if n.place is not None), ratio.place)
        if place is not None:
            yield Answer(place, text, tuple(n.place for n in (ratio, kept[0]) if n.place is not None))
            return


def coordinates_averaged(run: Rehearsing) -> Iterator[Answer]:
    """The log-probability of an action is the sum over its coordinates; their mean is the root of a likelihood."""
    told: set[int] = set()
    for node in trained(run):
        of = node.inputs[0] if node.op == "mean" and node.inputs else None
        if not isinstance(of, Node) or of.op != "log_prob" or node.place is None or id(node.place[0]) in told:
            continue
        dims = of.shape.dims
        last = along(node)
        if of.shape.open or len(dims) < 2 or last not in (-1, len(dims) - 1) or dims[-1] == 1:
            continue
        owner = of.owner.name if of.owner is not None else ""
        if owner in CONTINUOUS and _weighed(run, node):
            told.add(id(node.place[0]))
            text = "the mean over the coordinates of an action: its log-probability is their sum"
            yield Answer(node.place, text, (of.place,) if of.place is not None and of.place != node.place else ())


def _weighed(run: Rehearsing, node: Node) -> bool:
    """True where it goes on into a ratio, or is multiplied with something that was not trained: an advantage."""
    level, table = [node], users(run)
    for _ in range(6):
        level = [u for n in level for u in table.get(id(n), ()) if u.grad]
        for user in level:
            if user.op == "exp":
                return True
            if user.op == "mul" and any(isinstance(i, Node) and not i.grad for i in user.inputs[:2]):
                return True
    return False
