"""Parameters behind ``DistributedDataParallel`` that get a gradient in one turn and none in another."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj
from trainwreck.code.rehearsal.graph import opaque
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, reached

WRAPPER = "DistributedDataParallel"


def now_and_then(run: Rehearsing) -> Iterator[Answer]:
    """A network whose backward waits for parameters that another turn uses and this one doesn't."""
    for wrapper in (o for o in run.objects if o.name == WRAPPER and o.place is not None):
        options = [wrapper.options.get(k, False) for k in ("find_unused_parameters", "static_graph")]
        params = [p for p in run.parameters(wrapper)[0] if p.op == "param"]
        events = [e for e in backwards(run) if {id(p) for p in params} & {id(p) for p in reached(e)}]
        if any(o not in (False, None) for o in options) or len(events) < 2:
            continue
        if any(opaque(e.subject) or e.tests for e in events) or any(_switched(p) for p in params):
            continue
        mine = [{id(p) for p in params} & {id(p) for p in reached(e)} for e in events]
        used = set().union(*mine)
        for event, some in zip(events, mine, strict=True):
            left = [p for p in params if id(p) in used - some]
            if left and wrapper.place is not None and not _together(run, event):
                text = f"{_of(left[0])} gets no gradient in some turns, and this waits for all parameters in each"
                yield Answer(wrapper.place, text, (event.place,) if event.place is not None else ())
                break


def _switched(param: Node) -> bool:
    return any(w.name == "requires_grad" for w in param.writes)


def _together(run: Rehearsing, event: Event) -> bool:
    """True where another backward follows before the next step: together they may reach all."""
    later = next((e for e in run.tape if e.serial > event.serial and e.name in ("step", "backward")), None)
    before = [e for e in run.tape if e.serial < event.serial and e.name in ("step", "backward")]
    return (later is not None and later.name == "backward") or bool(before and before[-1].name == "backward")


def _of(param: Node) -> str:
    return param.name or (param.owner.name if isinstance(param.owner, Obj) else "a parameter")
