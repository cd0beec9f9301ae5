"""Gradients that a program writes into its weights itself: taken from copies of the network (workers, shards, tasks),
added up or averaged, and stepped by an optimizer."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, ids, lives, reached, steps
from trainwreck.code.rehearsal.questions.own_updates import MOVES

CLEARS = frozenset(["zero_grad", "zero_", "fill_"])


def _handed(run: Rehearsing) -> list[tuple[Event, Node, set[int]]]:
    """Where a weight is given a gradient that comes from those of others: the event, the weight, and (by ``id``) whose
    gradients these are."""
    if "handed gradients" not in run.memo:
        found: list[tuple[Event, Node, set[int]]] = []
        for event in run.tape:
            param = event.subject
            if event.name == "set_grad" and isinstance(param, Node) and param.op == "param" and event.place is not None:
                sources = _of(event.args)
                if sources - {id(param)}:
                    found.append((event, param, sources))
        run.memo["handed gradients"] = found
    known: list[tuple[Event, Node, set[int]]] = run.memo["handed gradients"]
    return known


def _of(value: Value) -> set[int]:
    """The parameters (by ``id``) whose gradients a value is put together from."""
    # a gradient that is asked for (``autograd.grad``) is new; one that is read off a weight is what has gathered there
    read = (n for n in ancestors(value, through=lambda n: n.op != "param") if n.op == "grad" and len(n.inputs) == 1)
    return {id(i) for n in read for i in n.inputs if isinstance(i, Node) and i.op == "param"}


def _cleared(run: Rehearsing, param: Node) -> bool:
    """True where anything ever clears or overwrites the gradient of a parameter, or may do so."""
    for event in run.tape:
        if event.name in CLEARS:
            covered = ids(event.state.get("held", ()))
            if id(param) in covered or (event.name == "zero_grad" and not event.state.get("complete", False)):
                return True
            if event.name != "zero_grad" and id(param) in _of(event.subject):
                return True
        elif event.name == "set_grad" and event.subject is param and id(param) not in _of(event.args):
            return True
    return False


def adds_to_the_last(run: Rehearsing) -> Iterator[Answer]:
    """Gradients of copies are added to those of the network that steps, and nothing clears them after the step; or the
    copies keep their own from turn to turn."""
    if not lives(run).sure:
        return
    stepped = ids(p for s in steps(run) if s.turns for p in held(s))
    for event, param, sources in _handed(run):
        if id(param) not in stepped or not any(t.generic for t in event.turns):
            continue
        if id(param) in sources and not _cleared(run, param) and event.place is not None:
            yield Answer(event.place, "this is added to the gradients of all earlier updates: nothing clears them")
            return
        for backward in backwards(run):
            lender = next((p for p in reached(backward) if id(p) in sources and id(p) not in stepped), None)
            if lender is None or backward.place is None or not any(t.generic for t in backward.turns):
                continue
            if _made_anew(lender, backward) or _cleared(run, lender):
                continue
            text = "gradients of all earlier turns are still there when this adds its own: nothing clears them"
            yield Answer(backward.place, text, (event.place,) if event.place is not None else ())
            return


def _made_anew(param: Node, event: Event) -> bool:
    """True where the copy is made in a loop that the backward stands in too."""
    return bool({id(t.node) for t in param.turns} & {id(t.node) for t in event.turns})


def overwritten(run: Rehearsing) -> Iterator[Answer]:
    """``mine.grad = theirs.grad / n`` for one copy after the other: only the last one's is left at the step."""
    last: dict[tuple[int, int], tuple[Event, set[int]]] = {}
    for event, param, sources in _handed(run):
        place = event.place
        if place is None:
            continue
        key = (id(param), id(place[0]))
        before, earlier = last.get(key, (event, sources))
        last[key] = (event, sources)
        if earlier <= sources or id(param) in sources or before.turns[:-2] != event.turns[:-2] or len(event.turns) < 2:
            continue
        using = [s.serial for s in steps(run) if id(param) in ids(held(s))]
        if any(before.serial < at < event.serial for at in using) or not any(at > event.serial for at in using):
            continue
        text = "each of the copies overwrites what the one before it gave: the step sees the gradients of the last"
        yield Answer(place, text)
        return


def stepped_elsewhere(run: Rehearsing) -> Iterator[Answer]:
    """The weights that are given the gradients are held by no optimizer, and nothing else moves them."""
    moved = steps(run)
    if not moved or not lives(run).sure or not all(s.state.get("complete", False) for s in moved):
        return
    optimizers = [o for o in run.objects if is_optimizer(o)]
    known = ids(p for s in moved for p in held(s)) | ids(p for o in optimizers for p in run.optimized(o)[0])
    for event, param, _ in _handed(run):
        after = next((s for s in moved if s.serial > event.serial), None)
        place = getattr(after.subject, "place", None) if after is not None else None
        moves = [w for w in param.writes if w.name in MOVES and w.turns[:1] == event.turns[:1]]
        if id(param) in known or place is None or moves:
            continue
        text = "this optimizer holds none of the weights that the gradients are written into: they never move"
        yield Answer(place, text, (event.place,) if event.place is not None else ())
        return


__all__ = ["adds_to_the_last", "overwritten", "stepped_elsewhere"]
