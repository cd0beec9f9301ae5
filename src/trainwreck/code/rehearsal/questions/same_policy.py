"""Old and new policy: a ratio of log-probabilities that both come from the policy as it is now."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.canonical import canon
from trainwreck.code.rehearsal.questions.terms import losses_of, parameters_behind


def same_policy(run: Rehearsing) -> Iterator[Answer]:
    """The ratio of a clipped objective is built from the policy that is trained, again at each of several updates."""
    told: set[int] = set()
    for event, _ in losses_of(run):
        behind = list(ancestors(event.subject, through=lambda n: n.grad))
        if not any(n.op in ("minimum", "min", "clamp", "clip", "maximum", "max") for n in behind):
            continue
        for node in behind:
            if node.op != "exp" or not node.inputs or not isinstance(node.inputs[0], Node):
                continue
            inner = node.inputs[0]
            if inner.op != "sub" or len(inner.inputs) < 2 or node.place is None or id(node.place[0]) in told:
                continue
            new, old = inner.inputs[:2]
            if not isinstance(new, Node) or not isinstance(old, Node) or not new.grad:
                continue
            if old.grad and (new is old or _asked(new) != _asked(old)):
                continue  # one sample against another
            if _now(new, old) and _several(run, event, new):
                told.add(id(node.place[0]))
                source, scope = _origin(old), node.place[1]
                seen = (*source.stack, source.place) if source is not None and source is not _origin(new) else ()
                place = next((p for p in reversed(seen) if p is not None and p[1] is scope), node.place)
                text = "both log-probabilities come from the policy as it is now: the ratio is always one"
                yield Answer(place, text, (node.place,))


def _asked(value: Node) -> set[object]:
    """The data that a network's answer hangs on."""
    inside = ancestors(value, through=lambda n: n.grad)
    return {canon(n) for n in inside if not n.grad and n.op not in ("param", "buffer")}


def _origin(node: Node) -> Node | None:
    for inner in ancestors(node):
        if inner.op in ("log_prob", "log_softmax", "cross_entropy"):
            return inner
    return None


def _now(new: Node, old: Node) -> bool:
    """True where the old one is the new one, or is computed anew with the same parameters from the same data."""
    one, other = _origin(new), _origin(old)
    if one is None or other is None:
        return False
    if one is other:
        return True
    if [t.node for t in one.turns] != [t.node for t in other.turns]:
        return False
    if any(a is not b for a, b in zip(one.turns, other.turns, strict=True)):
        return False
    same = parameters_behind(one).keys() == parameters_behind(other).keys()
    return same and bool(parameters_behind(one)) and not _stored(old, other)


def _stored(old: Node, origin: Node) -> bool:
    """True where the log-probability went through a list, an array or a loader on its way."""
    return any(n.op in ("setitem", "batch", "element", "stack") for n in ancestors(old, lambda n: n is not origin)
               if n.serial > origin.serial)  # fmt: skip


def _several(run: Rehearsing, event: Event, new: Node) -> bool:
    """True where several updates are made from the same samples: they come from outside of an inner loop."""
    loops = [t for t in event.turns if not _single(t.over)]
    for node in ancestors(new):
        if node.op in ("sample", "multinomial", "rsample") and event.turns:
            inside = {id(t.node) for t in node.turns}
            return any(id(t.node) not in inside for t in loops)
    return False


def _single(over: Value) -> bool:
    return isinstance(over, Items) and not over.more and len(over.items) == 1


def averaged_ratios(run: Rehearsing) -> Iterator[Answer]:
    """The ratio of an answer is the average of its tokens' ratios: clipped as one, it has to be the exponential of
    the average of their logarithms (GSPO, arXiv:2507.18071)."""
    for event, _ in losses_of(run):
        for node in ancestors(event.subject, through=lambda n: n.grad):
            if node.op not in ("clamp", "clip") or not node.grad or not node.inputs:
                continue
            mean, first = None, node.inputs[0]
            while isinstance(first, Node) and first.inputs and first.op in AVERAGES:
                mean = first if first.op in ("mean", "sum") and _along_tokens(first) else mean
                sides = [i for i in first.inputs[:2] if isinstance(i, Node) and i.grad] if first.op == "mul" else []
                first = sides[0] if sides else first.inputs[0]
            difference = first.inputs[0] if isinstance(first, Node) and first.op == "exp" and first.inputs else None
            if mean is None or mean.place is None or not isinstance(difference, Node) or difference.op != "sub":
                continue
            if all(isinstance(i, Node) and _origin(i) is not None for i in difference.inputs[:2]):
                text = "ratios of tokens are averaged here: the ratio of a whole is the exponential of an average"
                yield Answer(mean.place, text, tuple(p for p in (first.place, node.place) if p is not None))
                return


AVERAGES = frozenset(["mean", "sum", "mul", "div", "unsqueeze", "squeeze", "view", "reshape"])


def _along_tokens(node: Node) -> bool:
    """True for an average along one axis that is not that of the answers."""
    return along(node) not in (None, 0)
