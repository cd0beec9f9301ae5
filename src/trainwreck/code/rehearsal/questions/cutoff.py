"""Parameters that an optimizer holds and no backward reaches, though the loss is computed from them."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Table
from trainwreck.code.rehearsal.graph import opaque, parts, reached
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, steps
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.roles import users

CUTS = frozenset(["item", "detach", "detach_", "data", "numpy", "tolist", "float", "no_grad"])
MAX_WAY = 6


def used_as_numbers(run: Rehearsing) -> Iterator[Answer]:
    """A parameter of the optimizer whose value goes into the loss as a plain number (or detached) alone."""
    losses = [e.subject for e in backwards(run)]
    if not losses or any(opaque(loss) for loss in losses):
        return
    learned = {id(p) for loss in losses for p in reached(loss)}
    learned |= {id(n) for e in run.tape if e.name == "grad" for a in e.args[1:] for n in parts(a)}
    learned |= {id(e.subject) for e in run.tape if e.name == "set_grad"}
    last = max(e.serial for e in run.tape if e.name == "backward")
    told: set[int] = set()
    for event in (s for s in steps(run) if s.turns):
        for param in held(event):
            written = any(w.serial < last for w in param.writes)  # the best weights may be put back at the end
            if id(param) in learned or param.trainable is not True or id(param) in told or written:
                continue
            told.add(id(param))
            cut = _cut(run, param)
            if cut is not None and cut.place is not None:
                text = f"{param.name or 'a parameter'} goes into the loss without its graph here: it is never learned"
                yield Answer(cut.place, text, (event.place,) if event.place is not None else ())


def _cut(run: Rehearsing, param: Node) -> Node | None:
    """The nearest value behind the parameter that hangs in no graph and feeds a loss."""
    table, used = users(run), feeding(run)
    level, seen = [param], {id(param)}
    for _ in range(MAX_WAY):
        found = [u for one in level for u in table.get(id(one), ()) if id(u) not in seen]
        for user in found:
            if user.op in CUTS and not user.grad and id(user) in used:
                return user
        seen |= {id(u) for u in found}
        level = [u for u in found if u.grad]
    return None


def frozen_group(run: Rehearsing) -> Iterator[Answer]:
    """One of several groups of an optimizer, with a rate of its own, that holds frozen parameters alone."""
    moving = {id(e.subject) for e in steps(run) if e.turns}
    for optimizer in (o for o in run.objects if is_optimizer(o) and id(o) in moving):
        groups = [g for g in run.groups(optimizer).items if isinstance(g, Table)]
        if len(groups) < 2:
            continue
        for group in groups:
            params = group.entries.get("params")
            mine = [p for p in params.items if isinstance(p, Node)] if isinstance(params, Items) else []
            if not mine or not all(p.op == "param" and p.trainable is False for p in mine):
                continue
            stops = [w for p in mine for w in p.writes if w.name == "requires_grad" and w.args[:1] == (False,)]
            before = [w for w in stops if w.serial < optimizer.serial and w.place is not None]
            if len({w.serial for w in before}) >= len(mine) and group.entries.get("lr", 1) != 0:
                text = "these parameters are frozen here, and a group of the optimizer is made for them alone"
                places = (optimizer.place,) if optimizer.place is not None else ()
                place = before[-1].place
                assert place is not None
                yield Answer(place, text, places)
                break
