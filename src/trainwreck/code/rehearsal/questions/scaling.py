"""What happens to gradients between the backward and the step: division by the micro-batches, clipping, unscaling."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near, opaque, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.gradients import (
    backwards,
    counted,
    held,
    ids,
    lives,
    parameters_of,
    reached,
    same_turn,
    steps,
)

THROUGH = frozenset(["scale", "add", "either", "sub", "neg", "mul", "div", "getitem", "part", "squeeze", "attribute"])
ERRORS = frozenset(["pow", "square", "abs"])
CHUNKS = frozenset(["chunk", "split", "tensor_split", "unbind", "view", "reshape", "unflatten"])


def undivided(run: Rehearsing) -> Iterator[Answer]:
    """The mean losses of several micro-batches add up before the step, and none is divided by their number."""
    life = lives(run)
    if any(e.name == "set_grad" for e in run.tape) or not life.sure:
        return
    for step, together in life.sums:
        if len(together) < 2 or not step.turns:
            continue
        first, last = together[0], together[-1]
        again = first.place is not None and last.place is not None and first.place[0] is last.place[0]
        if not again or first.turns == last.turns or last.place is None:
            continue
        over = last.turns[-1].over if last.turns else None
        cut = [over] if isinstance(over, Node) else list(parts(over.columns)) if isinstance(over, Items) else []
        chunks = bool(cut) and all(c.op in CHUNKS and c.turns for c in cut)
        micro = len(step.turns) < len(last.turns) and (chunks or _gathered(run, over) or _drawn_anew(run, last))
        other = _another_number(run, step, last)
        if other and counted(step):
            text = f"the mean loss is divided by {other[0]:g}, and {other[1]:g} batches are accumulated for each step"
            yield Answer(last.place, text, (step.place,) if step.place is not None else ())
            return
        times = _multiplied(last.subject)
        if (counted(step) or micro) and (times or _plain_mean(last.subject)):
            text = "the loss is a mean that is not divided by the number of accumulated batches"
            if times:
                text = f"the mean loss is multiplied by {times} before batches are accumulated: divide by their number"
            if isinstance(last.subject, Node) and last.subject.op in ERRORS:
                text = "the errors of single examples add up before the step, and none is divided by their number"
            yield Answer(last.place, text, (step.place,) if step.place is not None else ())
            return


def _another_number(run: Rehearsing, step: Event, last: Event) -> tuple[float, float] | None:
    """What the loss is divided by and how many batches are gathered, where these are known and far apart."""
    every = next((n.inputs[1] for t in step.tests for n in ancestors(t) if n.op == "mod" and len(n.inputs) > 1), None)
    window, divisor, value = number(run, every), 1.0, last.subject
    while isinstance(value, Node) and value.op in ("div", "mul") and len(value.inputs) == 2:
        first, second = value.inputs
        scaled = isinstance(first, Node) and first.grad
        known = number(run, second if scaled else first)
        if not known or known <= 0 or (value.op == "div" and not scaled):
            return None
        divisor *= known if value.op == "div" else 1.0  # a factor may be the weight of the loss
        value = first if scaled else second
    summed = any(e.name in ("all_reduce", "reduce") for e in run.tape)  # then it is divided by the ranks as well
    if not window or divisor <= 1 or summed or not _plain_mean(value):
        return None
    return (divisor, window) if not 1 / FAR < divisor / window < FAR else None


FAR = 1.9
"""Two numbers so far apart are not the same with a rest left out."""


def _gathered(run: Rehearsing, over: Value) -> bool:
    """True for a list of batches of one loader: those that belong to one update."""
    if not isinstance(over, Items) or over.place is None or not over.items:
        return False
    owners = {id(n.owner) for n in parts(over) if n.op == "batch"}
    listed = isinstance(over.place[0], ast.ListComp) or any(e.name == "append" and e.subject is over for e in run.tape)
    whole = all(any(n.op == "batch" for n in parts(item)) for item in over.items)
    return listed and whole and len(owners) == 1


def _drawn_anew(run: Rehearsing, last: Event) -> bool:
    """True for ``for _ in range(n)`` in which each turn draws rows of the data again, by numbers or by ``next``.

    Not meant: turns that do something else each (their number is used), and tasks that weights are adapted to."""
    turn = last.turns[-1]
    loop = turn.node
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or last_name(loop.iter.func) != "range":
        return False
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    inner = [n for child in loop.body for n in ast.walk(child) if isinstance(n, ast.Name)]
    used = {n.id for n in inner if isinstance(n.ctx, ast.Load)}
    if names & used or any(n.op in ADAPTS for n in run.nodes) or any(e.name == "grad" for e in run.tape):
        return False
    fresh = [n for n in ancestors(last.subject) if any(t.node is loop for t in n.turns)]
    ends = [e for n in fresh for i in n.inputs[1:2] if n.op == "getitem" and isinstance(i, Obj) for e in i.args]
    return any(n.op in WHOLE or n.op == "batch" for n in (*fresh, *(m for e in ends for m in near(e, 8))))


WHOLE = frozenset(["randint", "integers", "randperm", "permutation", "choice", "sample"])
"""Draws of whole numbers: rows, or where pieces of a text begin."""
ADAPTS = frozenset(["functional_call", "deepcopy", "clone_module"])


def _multiplied(value: Value) -> int:
    """The whole number above one that a bare mean is multiplied by, else 0."""
    if not isinstance(value, Node) or value.op != "mul" or len(value.inputs) < 2:
        return 0
    for factor, rest in (value.inputs[:2], value.inputs[1::-1]):
        if isinstance(factor, int) and not isinstance(factor, bool) and factor > 1 and _plain_mean(rest):
            return factor
    return 0


def _plain_mean(value: Value, depth: int = 0) -> bool:
    """True for the bare mean of a loss: no factor or divisor on the way to it, and no sum."""
    if not isinstance(value, Node) or depth > 10:
        return False
    if depth == 0 and value.op in ERRORS:
        # what runs backward is a single number: the error of one example
        return bool(value.inputs) and isinstance(value.inputs[0], Node) and value.inputs[0].op == "sub"
    if value.op in ("scale", "either", "add", "sub", "neg"):
        parts = [i for i in value.inputs if isinstance(i, Node) and i.grad]
        return bool(parts) and all(_plain_mean(p, depth + 1) for p in parts)
    if value.op in THROUGH:
        return False
    if value.op == "mean":
        return True
    reduced = value.options.get("reduction", "mean") == "mean" and "size_average" not in value.options
    return reduced and value.op.endswith(("_loss", "entropy", "logits", "_div"))


def clipped_elsewhere(run: Rehearsing) -> Iterator[Answer]:
    """Clipping that finds no new gradient: before the backward, after the step, or on other parameters."""
    life = lives(run)
    if not life.sure:
        return
    by_hand = {id(e.subject) for e in run.tape if e.name == "set_grad"}  # master copies are given their gradients
    for place in dict.fromkeys(e.place[0] for e, _, _ in life.clips if e.place is not None):
        mine = [c for c in life.clips if c[0].place is not None and c[0].place[0] is place]
        event, params, _ = mine[-1]
        if not params or not event.turns or event.place is None or ids(params) & by_hand:
            continue
        giving = [b for b in backwards(run) if ids(params) & ids(reached(b)) and b.turns]
        after = [
            s
            for s in steps(run)
            if s.serial > event.serial and same_turn(s, event) and s.turns[-1:] == event.turns[-1:]
        ]
        if not any(fresh for _, _, fresh in mine):
            if giving:
                near = next((b for b in giving if same_turn(b, event)), giving[0])
                when = "before the backward" if near.serial > event.serial else "after the step"
                text = f"clipping stands {when}: it finds no gradient that is still to be used"
                yield Answer(event.place, text, (near.place,) if near.place is not None else ())
            elif any(_blind(b) or _cut_from(b, params) for b in backwards(run)):
                continue  # what a transformed function makes of parameters isn't followed, nor is a cut graph
            elif any(b.turns for b in backwards(run)) and parameters_of(event.get("parameters", 0))[1]:
                yield Answer(event.place, "these parameters get no gradient from any backward: others are meant", ())
        elif after and not any(ids(params) & ids(held(s)) for s in after):
            text = "the parameters that are clipped here are not those that the next step moves"
            yield Answer(event.place, text, tuple(s.place for s in after[:1] if s.place is not None))


def _cut_from(backward: Event, params: list[Node]) -> bool:
    """True where the loss is made of these parameters all the same, and something on the way takes the gradient."""
    wanted = ids(params)
    return any(id(n) in wanted for n in ancestors(backward.subject))


def _blind(backward: Event) -> bool:
    """True where the loss may be made of parameters that aren't seen: it hangs on none, or on what isn't understood."""
    return not reached(backward) or opaque(backward.subject)


def clipped_scaled(run: Rehearsing) -> Iterator[Answer]:
    """Clipping between the backward of a scaled loss and the unscaling of its gradients."""
    told: set[int] = set()
    for move in run.tape:
        scaler = move.subject
        if move.name != "scaler_step" or not isinstance(scaler, Obj) or scaler.options.get("enabled") is False:
            continue
        mine = ids(_held_then(run, move))
        scaled = [e for e in run.tape if e.name == "scale" and e.subject is scaler and e.serial < move.serial]
        for clip in run.tape:
            if clip.name != "clip" or clip.serial > move.serial or not scaled or clip.place is None:
                continue
            before = [s for s in scaled if s.serial < clip.serial]
            if clip.turns != move.turns or not before or id(clip.place[0]) in told:
                continue
            if not mine & ids(parameters_of(clip.get("parameters", 0))[0]):
                continue
            freed = any(
                e.name == "unscale_" and e.subject is scaler and before[-1].serial < e.serial < clip.serial
                for e in run.tape
            )  # fmt: skip
            if not freed:
                told.add(id(clip.place[0]))
                text = "gradients are clipped here while they are still multiplied by the scale of the loss"
                yield Answer(clip.place, text, (move.place,) if move.place is not None else ())


def _held_then(run: Rehearsing, move: Event) -> list[Node]:
    """The parameters of the optimizer that a scaler steps."""
    for step in steps(run):
        if step.serial > move.serial and step.state.get("scaler") is move.subject:
            return held(step)
    return []


def never_updated(run: Rehearsing) -> Iterator[Answer]:
    """A scaler that steps optimizers and is never updated."""
    for scaler in {id(e.subject): e.subject for e in run.tape if e.name == "scaler_step"}.values():
        moves = [e for e in run.tape if e.name == "scaler_step" and e.subject is scaler and e.turns]
        updated = any(e.name == "update" and e.subject is scaler for e in run.tape)
        known = isinstance(scaler, Obj) and scaler.options.get("enabled") is not False
        if moves and not updated and known and moves[0].place is not None:
            yield Answer(moves[0].place, "the scaler steps here, and nothing ever updates its scale", ())
