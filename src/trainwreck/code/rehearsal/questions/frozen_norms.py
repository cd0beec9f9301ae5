"""Batch-norm layers that were frozen and put into evaluation mode, and are put back by the next ``train()``."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Obj, is_module
from trainwreck.code.rehearsal.questions import Answer

NORMS = frozenset(["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"])


def put_back(run: Rehearsing) -> Iterator[Answer]:
    """A frozen part was put into evaluation mode before training, or just before the ``train()`` of the whole in each
    turn, and runs in training mode there: its running statistics go on changing."""
    for forward in run.tape:
        norm = forward.subject
        if forward.name != "forward" or not isinstance(norm, Obj) or norm.name not in NORMS or not forward.turns:
            continue
        if forward.state.get("training") is not True or forward.maybe:
            continue
        params = run.parameters(norm)[0]
        if not params or any(p.trainable is not False for p in params):
            continue
        before = [e for e in run.tape if e.serial < forward.serial and e.name in ("eval", "train")]
        held = [e for e in before if _holds(run, e, norm)]
        pair = _undone(run, held) or (_once(held) if forward.grad_mode else None)
        if pair is not None and pair[1].place is not None and pair[0].place is not None:
            text = "this puts the frozen batch-norm layers back into training mode"
            yield Answer(pair[1].place, text, (pair[0].place,))
            return


def _once(held: list[Event]) -> tuple[Event, Event] | None:
    """The first ``eval()`` before any loop, and the ``train()`` that follows it."""
    frozen = next((e for e in held if e.name == "eval" and not e.turns), None)
    back = next((e for e in held if e.name == "train" and frozen is not None and e.serial > frozen.serial), None)
    return (frozen, back) if frozen is not None and back is not None else None


def _undone(run: Rehearsing, held: list[Event]) -> tuple[Event, Event] | None:
    """The last ``eval()`` of a part and the ``train()`` of the whole right behind it: nothing ran in between."""
    if len(held) < 2 or [e.name for e in held[-2:]] != ["eval", "train"]:
        return None
    part, whole = held[-2:]
    inside = isinstance(whole.subject, Obj) and any(
        m is part.subject for _, m in run.submodules(whole.subject, deep=True)
    )
    ran = any(e.name == "forward" and part.serial < e.serial < whole.serial for e in run.tape)
    return (part, whole) if inside and not ran and part.subject is not whole.subject else None


def _holds(run: Rehearsing, event: Event, norm: Obj) -> bool:
    if not is_module(event.subject) or not isinstance(event.subject, Obj):
        return False
    return event.subject is norm or any(m is norm for _, m in run.submodules(event.subject, deep=True))
