"""Copies of a network whose weights follow: do the running statistics of batch norm follow too?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Obj, Place, is_module
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import going_on

ANSWERS = (
    "buffers", "running_mean", "running_var", "update_bn", "bn_update", "pretrained", "recalibrat",
    "state_dict().items", "state_dict().values",
)  # fmt: skip
"""Words of a program that may bring the statistics along, or start from good ones."""


def statistics_left_behind(run: Rehearsing) -> Iterator[Answer]:
    """An average of weights with batch norms is evaluated with the statistics that it was copied with.

    Only where the average is moved parameter by parameter, is never run in training mode itself, and nothing in the
    program speaks of buffers."""
    texts = [walked.top.module.text for walked in run.project.walked.values()]
    if not any("BatchNorm" in t for t in texts) or any(word in t for t in texts for word in ANSWERS):
        return
    told: set[int] = set()
    for copy in run.objects:
        if copy.name == "AveragedModel" and "swa_utils" in copy.kind:
            place = copy.place if copy.get("use_buffers", 4) in (None, False) and _updated(run, copy) else None
            inner = copy.get("model", 0)
        else:
            inner = copy if is_module(copy) and copy.copy_of is not None else None
            place = _moved(run, copy) if inner is not None else None
        if place is None or id(place[0]) in told or not isinstance(inner, Obj) or not _keeps_statistics(run, inner):
            continue
        runs = [e for e in run.tape if e.name == "forward" and e.subject is copy]
        if _loaded(run, copy, runs[-1].serial if runs else 0):
            continue
        before = [e for e in run.tape if e.name == "step" and is_optimizer(e.subject) and e.serial < copy.serial]
        if before and copy.name != "AveragedModel":
            continue  # copied from a network that had been trained: so were its statistics
        if not runs or any(e.state.get("training") is not False for e in runs):
            continue
        told.add(id(place[0]))
        text = "the weights of the average follow, the running statistics of its batch norms stay those of the start"
        yield Answer(place, text, tuple(p for p in (runs[0].place,) if p is not None))


def _loaded(run: Rehearsing, copy: Obj, last: int) -> bool:
    """True where the copy, or what it was made of, is given a whole state by more than a job that goes on."""
    loads = [e for e in run.tape if e.name == "load_state_dict"]
    if not loads:
        return any("load_state_dict" in walked.top.module.text for walked in run.project.walked.values())
    early = [e for e in loads if is_module(e.subject) and e.serial not in going_on(run)]
    return any(e.serial < copy.serial or (e.subject is copy and e.serial < last) for e in early)


def _updated(run: Rehearsing, averaged: Obj) -> bool:
    return any(e.name == "update_parameters" and e.subject is averaged and e.turns for e in run.tape)


def _moved(run: Rehearsing, copy: Obj) -> Place | None:
    """Where the parameters of the copy are moved in a loop over parameters; None where that is not all that is done."""
    writes: list[Event] = []
    for param in run.parameters(copy)[0]:
        written = [w for w in param.writes if w.name != "requires_grad" and w.serial > copy.serial]
        later = [w for w in written if w.turns and w.place is not None]
        if not later:
            return None
        writes += later
    for write in writes:
        assert write.place is not None
        loops = [a for a in run.project.ancestors(*write.place) if isinstance(a, ast.For | ast.ListComp)]
        if not loops or not isinstance(loops[0], ast.For) or "parameters(" not in ast.unparse(loops[0].iter):
            return None
    return writes[0].place if writes else None


def _keeps_statistics(run: Rehearsing, module: Obj) -> bool:
    owners = [p.owner for p in run.parameters(module.copy_of or module)[0] if p.owner is not None]
    norms = [o for o in owners if o.name.startswith("BatchNorm")]
    return bool(norms) and all(o.get("track_running_stats", 4) is not False for o in norms)
