"""Summands of a loss that add a number and no gradient, although parameters that are trained stand behind them."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value, candidates
from trainwreck.code.rehearsal.graph import SIZED, ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.cuts import DETACHES, HARD, switch_around
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, unknown
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

MAX_LEAVES = 40
LOGS = frozenset(["log", "log_softmax", "xlogy", "entropy"])
KEEPS = STRUCTURE - DETACHES


class Idle(Row):
    """A summand without a gradient, and the operation that took it away."""

    term: Node
    cut: Node


def idle(run: Rehearsing) -> Iterator[tuple[Node, Idle]]:
    """The summands of each loss that hang in no graph, beside others that do."""
    reached = {id(p) for e in run.tape if e.name == "backward" for p in e.state.get("reached", ())}
    trained = ids(p for e in steps(run) for p in held(e) if p.trainable is not False or id(p) in reached)
    for event in backwards(run):
        for loss in candidates(event.subject):
            leaves = list(_leaves(loss))
            live = [n for n in leaves if n.grad]
            if not live or not event.turns:
                continue
            shown = {id(inner) for n in live for inner in _behind_cuts(n)}
            for leaf in leaves:
                if leaf.grad or any(id(n) in shown for n in _behind_cuts(leaf)):
                    continue  # ``x - x.detach()`` counts as a number on purpose
                cut = _cut(leaf, trained)
                if cut is not None and not _of_a_divergence(leaf, cut, live):
                    yield loss, Idle(leaf, cut)


def without_gradient(run: Rehearsing) -> Iterator[Answer]:
    """A summand whose gradient ends at a ``detach``, an ``item``, or at ``autograd.grad`` without its own graph."""
    for loss, found in idle(run):
        if found.cut.place is not None:
            why = "create_graph is not set here" if found.cut.op == "grad" else "the gradient ends here"
            text = f"{why}: one summand of the loss adds a number and trains nothing"
            yield Answer(found.cut.place, text, tuple(n.place for n in (found.term, loss) if n.place is not None))


def _leaves(loss: Value, depth: int = 0, inside: bool = False) -> Iterator[Node]:
    """What is added up, each with its average: sums within averages are taken apart only if ``inside``."""
    if not isinstance(loss, Node) or depth > 30:
        return
    inputs = loss.inputs
    if loss.op in ("add", "sub") and len(inputs) >= 2 and loss.grad:
        for item in inputs[:2]:
            yield from _leaves(item, depth + 1, inside)
    elif loss.op in ("mul", "div") and len(inputs) >= 2 and any(number_of(i) is not None for i in inputs[:2]):
        for item in inputs[:2]:
            yield from _leaves(item, depth + 1, inside) if number_of(item) is None else ()
    elif loss.op in ("neg", *KEEPS) and inputs and isinstance(inputs[0], Node):
        yield from _leaves(inputs[0], depth + 1, inside)
    elif loss.op in ("sum", "stack", "mean") and inputs and isinstance(inputs[0], Items | tuple):
        for item in list(inputs[0] if isinstance(inputs[0], tuple) else inputs[0].items)[:MAX_LEAVES]:
            yield from _leaves(item, depth + 1, inside)
    elif loss.op in ("sum", "mean") and inputs and isinstance(inputs[0], Node) and inputs[0].op == "stack":
        yield from _leaves(inputs[0], depth + 1, inside)
    elif inside and loss.op in ("sum", "mean") and inputs and isinstance(inputs[0], Node) and loss.grad:
        found = list(_leaves(inputs[0], depth + 1, inside))
        yield from found if len(found) > 1 else (loss,)
    else:
        yield loss


def _behind_cuts(leaf: Node) -> list[Node]:
    """The summand itself as it was before it was cut off, averages left aside."""
    found = [leaf]
    while found[-1].inputs and isinstance(found[-1].inputs[0], Node):
        node = found[-1]
        if node.op not in DETACHES and node.op not in STRUCTURE and node.op not in ("mean", "sum", "neg"):
            break
        found.append(node.inputs[0])
    return found


def _of_a_divergence(leaf: Node, cut: Node, live: list[Node]) -> bool:
    """True for the entropy of probabilities that another summand learns to give: together they are a divergence."""
    logs = any(n.op in LOGS for n in ancestors(leaf, through=lambda n: n is not cut))
    return logs and any(n is cut for other in live for n in ancestors(other))


def _cut(leaf: Node, trained: set[int], plain: bool = False) -> Node | None:
    """The operation behind ``leaf`` that took the gradient of trained parameters away; None where that is not sure.

    ``plain``: one that would have passed it on had gradients not been switched off."""
    queue, seen = [leaf], {id(leaf)}
    while queue:
        node = queue.pop(0)
        if (unknown(node) and node.op not in DETACHES) or node.op in ("either", "step"):
            return None
        for item in node.inputs:
            for inner in parts(item):
                live = inner.grad and inner.op != "param"
                if live and any(id(p) in trained for p in ancestors(inner) if p.op == "param"):
                    if plain:
                        return node if node.op not in DETACHES | HARD | SIZED | {"grad"} else None
                    return node if node.op in DETACHES or node.op == "grad" else None
                if id(inner) not in seen and not inner.grad:
                    seen.add(id(inner))
                    queue.append(inner)
    return None


def under_no_grad(run: Rehearsing) -> Iterator[Answer]:
    """A summand that goes on from live values with gradients switched off: they are not moved by what it says."""
    reached = {id(p) for e in run.tape if e.name == "backward" for p in e.state.get("reached", ())}
    trained = ids(p for e in steps(run) for p in held(e) if p.trainable is not False or id(p) in reached)
    for event in backwards(run):
        for loss in candidates(event.subject) if event.turns else ():
            leaves = list(_leaves(loss, inside=True))
            live = [n for n in leaves if n.grad]
            shown = {id(inner) for n in live for inner in _behind_cuts(n)}
            for leaf in leaves if live else ():
                if leaf.grad or any(id(n) in shown for n in _behind_cuts(leaf)):
                    continue
                cut = _cut(leaf, trained, plain=True)
                place = switch_around(run, cut) if cut is not None and not _of_a_divergence(leaf, cut, live) else None
                if place is not None:
                    text = "gradients are off here: one summand of the loss adds a number and trains nothing"
                    yield Answer(place, text, tuple(n.place for n in (leaf, loss) if n.place is not None))
                    return
