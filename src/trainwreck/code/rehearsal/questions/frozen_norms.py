"""Batch-norm layers that were frozen and put into evaluation mode, and are put back by the next ``train()``."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Obj, is_module
from trainwreck.code.rehearsal.questions import Answer

NORMS = frozenset(["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"])


def put_back(run: Rehearsing) -> Iterator[Answer]:
    """A frozen part was put into evaluation mode before training, and runs in training mode there: its running
    statistics go on changing."""
    for forward in run.tape:
        norm = forward.subject
        if forward.name != "forward" or not isinstance(norm, Obj) or norm.name not in NORMS or not forward.turns:
            continue
        if forward.state.get("training") is not True or not forward.grad_mode or forward.maybe:
            continue
        params = run.parameters(norm)[0]
        if not params or any(p.trainable is not False for p in params):
            continue
        frozen = next((e for e in run.tape if e.name == "eval" and _holds(run, e, norm) and not e.turns), None)
        if frozen is None or frozen.serial > forward.serial:
            continue
        again = [e for e in run.tape if e.name == "train" and frozen.serial < e.serial < forward.serial]
        back = next((e for e in again if _holds(run, e, norm)), None)
        if back is not None and back.place is not None and frozen.place is not None:
            text = "this puts the frozen batch-norm layers back into training mode"
            yield Answer(back.place, text, (frozen.place,))
            return


def _holds(run: Rehearsing, event: Event, norm: Obj) -> bool:
    if not is_module(event.subject) or not isinstance(event.subject, Obj):
        return False
    return event.subject is norm or any(m is norm for _, m in run.submodules(event.subject, deep=True))
