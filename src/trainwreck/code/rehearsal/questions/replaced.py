"""Is a layer whose weights were loaded put aside for a fresh one that nothing trains?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Obj, is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps


def replaced(run: Rehearsing) -> Iterator[Answer]:
    """After loading, a layer is made anew; no optimizer ever holds it, and the network is run with it."""
    loads = [e for e in run.tape if e.name == "load_state_dict" and is_module(e.subject) and not e.maybe]
    trained = {id(p) for e in steps(run) for p in held(e)}
    if not loads or not trained:
        return
    for event in run.tape:
        if event.name != "set" or event.place is None or event.maybe or len(event.args) < 2:
            continue
        old, new = event.options.get("old"), event.args[1]
        before = next((e for e in reversed(loads) if e.serial < event.serial and e.subject is event.subject), None)
        if before is None or not isinstance(old, Obj) or not isinstance(new, Obj) or old is new:
            continue
        if old.serial > before.serial or new.serial < before.serial or not is_module(new) or new.kind != old.kind:
            continue
        params = run.parameters(new)[0]
        fresh = bool(params) and not any(id(p) in trained or _filled(p.writes, event) for p in params)
        if fresh and _runs(run, new) and not any(e.serial > event.serial and e.subject is event.subject for e in loads):
            text = "this layer is made anew after its weights were loaded, and nothing trains it"
            yield Answer(event.place, text, (before.place,) if before.place is not None else ())
            return


def _filled(writes: list[Event], event: Event) -> bool:
    """True where something is written into the new layer later."""
    return any(w.serial > event.serial and w.name != "requires_grad" for w in writes)


def _runs(run: Rehearsing, layer: Obj) -> bool:
    return any(e.name == "forward" and e.subject is layer for e in run.tape)
