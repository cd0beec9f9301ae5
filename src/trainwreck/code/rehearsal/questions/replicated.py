"""Parameters behind ``DistributedDataParallel`` that get a gradient in one turn and none in another."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj
from trainwreck.code.rehearsal.graph import ancestors, opaque
from trainwreck.code.rehearsal.library.data import LOADERS
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
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


def tiny_norms(run: Rehearsing) -> Iterator[Answer]:
    """Batch norms behind the wrapper that see a few samples each, in every loader that is learned from."""
    learned = [n for e in backwards(run) for n in ancestors(e.subject) if n.op == "batch"]
    loaders = {id(n.owner): n.owner for n in learned if isinstance(n.owner, Obj) and n.owner.name in LOADERS}
    sizes = [number(run, loader.get("batch_size", 1, 1)) for loader in loaders.values()]
    if not sizes or any(s is None or s > TINY for s in sizes):
        return
    for wrapper in (o for o in run.objects if o.name == WRAPPER and o.place is not None):
        owners = [p.owner for p in run.parameters(wrapper)[0] if isinstance(p.owner, Obj)]
        norms = (o for o in owners if o.cls is None and o.name in BATCHNORMS)
        norm = next((o for o in norms if not _at_rest(run, o)), None)
        if norm is not None and wrapper.place is not None:
            text = f"batch norm sees {sizes[0]:.0f} samples per process, each rank for itself"
            yield Answer(wrapper.place, text, (norm.place,) if norm.place is not None else ())
            return


BATCHNORMS = frozenset(["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"])
TINY = 4
"""Samples: below about 8 the statistics of a batch are noisy (Wu and He, arXiv:1803.08494)."""


def _at_rest(run: Rehearsing, norm: Obj) -> bool:
    """True for a norm that runs with kept statistics (``eval``) wherever gradients are computed."""
    used = [e for e in run.tape if e.name == "forward" and e.subject is norm and e.state.get("grad") is not False]
    return bool(used) and all(e.state.get("training") is not True for e in used)


def _switched(param: Node) -> bool:
    return any(w.name == "requires_grad" for w in param.writes)


def _together(run: Rehearsing, event: Event) -> bool:
    """True where another backward follows before the next step: together they may reach all."""
    later = next((e for e in run.tape if e.serial > event.serial and e.name in ("step", "backward")), None)
    before = [e for e in run.tape if e.serial < event.serial and e.name in ("step", "backward")]
    return (later is not None and later.name == "backward") or bool(before and before[-1].name == "backward")


def _of(param: Node) -> str:
    return param.name or (param.owner.name if isinstance(param.owner, Obj) else "a parameter")
