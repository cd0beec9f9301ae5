"""What fp16 can't hold: weights that an optimizer of torch moves, and gradients that nothing scales."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import External, Obj, Place
from trainwreck.code.rehearsal.graph import graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.gradients import backwards, held, steps
from trainwreck.code.rehearsal.questions.rounding import chosen_at, types_of

HALF = frozenset(["half", "float16"])
ADAMS = frozenset(["Adam", "AdamW", "NAdam", "RAdam"])
LEAST = 3e-8
"""Half of the smallest number of fp16 (2**-24): anything below becomes zero."""


def with_adam(run: Rehearsing) -> Iterator[Answer]:
    for optimizer in {id(s.subject): s.subject for s in steps(run) if s.turns}.values():
        if not isinstance(optimizer, Obj) or optimizer.name not in ADAMS or optimizer.place is None:
            continue
        epsilon = number(run, optimizer.get("eps", 3, 1e-8))
        place = _halved(run, optimizer)
        if place is not None and epsilon is not None and epsilon < LEAST and optimizer.kind.startswith("torch.optim."):
            text = f"the weights become fp16 here, where Adam's epsilon of {epsilon:g} is zero"
            yield Answer(place, text, (optimizer.place,))


def with_scaler(run: Rehearsing) -> Iterator[Answer]:
    for step in steps(run):
        scaler = step.state.get("scaler")
        if not isinstance(scaler, Obj) or scaler.options.get("enabled", True) is not True:
            continue
        place = _halved(run, step.subject)
        if place is not None:
            text = "the weights become fp16 here, and the scaler refuses fp16 gradients"
            yield Answer(place, text, (step.place,) if step.place is not None else ())
            return


def _halved(run: Rehearsing, optimizer: Obj) -> Place | None:
    """Where all that the optimizer moves was turned into fp16 before training."""
    start = min((e.serial for e in run.tape if e.name == "backward"), default=0)
    casts = types_of(run, start)
    last = [s for s in steps(run) if s.subject is optimizer]
    params = [p for p in held(last[-1]) if p.trainable is not False] if last else []
    found = [casts[id(p)] for p in params if id(p) in casts]
    if not found or len(found) < len(params) or any(c.name not in HALF or c.maybe for c in found):
        return None
    return chosen_at(run, found[0].event) if found[0].event is not None else found[0].place


def unscaled(run: Rehearsing) -> Iterator[Answer]:
    """A backward through what was computed in fp16 under autocast, of a loss that no scaler multiplied."""
    scalers = [o for o in run.objects if o.kind.endswith("GradScaler") and o.place is not None]
    off = {id(o) for o in scalers if o.options.get("enabled") is False}
    if any(e.name in ("scale", "scaler_step") and id(e.subject) not in off for e in run.tape):
        return
    half = {id(o.place[0]): o.place for o in run.objects if o.place is not None and _in_half(o)}
    for backward in backwards(run) if half else ():
        for node in graph(backward.subject):
            for place in (node.place, *node.stack):
                above = run.project.ancestors(*place) if place is not None else ()
                items = [i for w in above if isinstance(w, ast.With) for i in w.items]
                found = next((half[id(i.context_expr)] for i in items if id(i.context_expr) in half), None)
                if found is not None:
                    idle = [o.place for o in scalers if o.place is not None]
                    text = "gradients of a forward in fp16 underflow without a GradScaler"
                    if idle:
                        text = "this scaler is off or never scales the loss, and the forward runs in fp16: gradients "
                        text += "underflow"
                    yield Answer(idle[0] if idle else found, text, (found,))
                    return


def _in_half(context: Obj) -> bool:
    """True for an autocast to fp16 that is on."""
    if context.name != "autocast" or context.options.get("enabled", True) is not True:
        return False
    kind = context.get("dtype", 1)
    device = context.get("device_type", 0)
    if kind is not None:
        return isinstance(kind, External) and kind.dotted in ("torch.float16", "torch.half")
    return "cuda" in context.kind or device == "cuda"
