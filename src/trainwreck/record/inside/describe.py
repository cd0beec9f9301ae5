"""An origin as plain JSON: kind, op, module, place, ranges, and one sentence."""

from __future__ import annotations

import os
import sysconfig
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import births, data, rows, tensors, values
from .births import decisive
from .events import Event, Frame, Origin

if TYPE_CHECKING:
    from .replay import Attempt

MAX_LISTED = 8
SELF_EVIDENT = ("deviation", "masked-softmax", "all-ignored", "empty-mean", "custom-backward", "linalg", "ctc")
"""Kinds in which it does not matter which call gave the values that went in."""
_PACKAGES = tuple(os.path.realpath(sysconfig.get_path(n)) + os.sep for n in ("purelib", "platlib", "stdlib"))


@dataclass(slots=True)
class Reference:
    """What a tensor from outside the trace is: a parameter, a buffer, or a variable of the step."""

    what: str
    name: str
    root: str
    line: int | None = None
    path: str | None = None


def refer(tensor: Any, attempt: Attempt, known: values.Known) -> Reference:
    """The name under which the user knows ``tensor``."""
    place = values.storage(tensor)
    if place in known.held:
        what, name = known.held[place]
        return Reference(what, name, name)
    space = attempt.cut.namespace if attempt.cut is not None else attempt.frame.f_locals
    first: dict[str, Any] = {k: space[k] for k in attempt.frame.f_locals if k in space}
    assigned = attempt.cut.assigned if attempt.cut is not None else {}
    found = [n for n, t in values.variables(first) if t is tensor] or [
        n for n, t in values.variables(first) if values.storage(t) == place
    ]
    found.sort(key=lambda n: _root(n) not in assigned)
    if found:
        root = _root(found[0])
        return Reference("variable", found[0], root, assigned.get(root), attempt.frame.f_code.co_filename)
    for frame in attempt.around:  # a batch that a framework handed in
        for name, held in values.variables(dict(frame.f_locals)):
            if held is tensor or values.storage(held) == place:
                return Reference("variable", name, "")
    return Reference("unknown", "a tensor", "")


def _root(name: str) -> str:
    return name.split("[")[0].split(".")[0]


def describe(
    origin: Origin | None,
    attempt: Attempt | None,
    known: values.Known,
    notes: list[str],
    damaged: list[dict[str, Any]] | None = None,
    hints: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The answer of a replay.

    ``kind``: a birth of ``births.WORDS``, or ``data``, ``weights``, ``buffer``, ``state``, ``unknown``. ``phase``:
    data, forward, loss, backward, weights, unknown. ``path``, ``line``: where it is to be looked at, in the user's code
    if there is any; ``inner``: the innermost line that is not torch's, where that is another. ``text``: one sentence.
    """
    notes = [*dict.fromkeys(attempt.notes if attempt is not None else notes)]
    base: dict[str, Any] = {"reproduced": attempt is not None, "notes": notes}
    if damaged:
        return base | _weights(damaged)
    if origin is None or attempt is None:
        return base | {"kind": "unknown", "phase": "unknown", "text": "the replay stayed finite", **(hints or {})}
    base |= {"ops": attempt.tracer.ops, "backward": attempt.tracer.phase == "backward"}
    if attempt.cut is not None:
        base["slice"] = attempt.cut.lines
        base["carried"] = attempt.cut.carried
    if origin.birth is None:
        return base | _outside(origin, attempt, known)
    return base | _birth(origin, origin.birth, attempt)


def _weights(damaged: list[dict[str, Any]]) -> dict[str, Any]:
    names = [d["name"] for d in damaged]
    return {
        "kind": "weights",
        "phase": "weights",
        "module": names[0],
        "parameters": damaged[:MAX_LISTED],
        "text": f"{len(names)} parameters were not finite before this step began: {', '.join(names[:4])}",
    }


def _birth(origin: Origin, event: Event, attempt: Attempt) -> dict[str, Any]:
    kind = births.kind(event, origin.put, attempt.tracer.seen_nodes)
    told = _event(event)
    phase = event.phase if event.phase == "backward" or event.module else "loss"
    value = "NaN" if event.nan else "infinity"
    where = f" in {event.module}" if event.module else ""
    name = event.call or event.op
    source = _source(event)
    side = " (backward)" if event.phase == "backward" else ""
    text = f"{value} is born in {name}{side}{where}{_at(told)}: {births.words(event, kind)}"
    more: dict[str, Any] = {}
    for key, other in (("became_nan", origin.became_nan), ("put", origin.put)):
        if other is not None:
            more[key] = _event(other)
    if origin.became_nan is not None:
        text += f"; it becomes NaN in {origin.became_nan.call or origin.became_nan.op}{_at(more['became_nan'])}"
    if origin.put is not None:
        text += f"; the infinities are written{_at(more['put'])}"
    if source and kind not in SELF_EVIDENT:
        more["source"] = source
        made = f"{source['call']}" + (f" of {source['module']}" if source["module"] else "")
        text += f"; its argument comes from {made}{_at(source)}"
    common = _common(event, attempt)
    if common:
        more["common"] = common
        text += f"; in common: {common[0]}"
    return {"kind": kind, "phase": phase, "text": text, **told, **more}


def _common(event: Event, attempt: Attempt) -> list[str]:
    """What the samples in which the value was born have in common, where they are some of the batch."""
    bad, shape = event.output.get("rows"), event.output.get("shape")
    if not bad or not shape:
        return []
    space = attempt.frame.f_locals
    return rows.sentences(bad, shape[0], values.variables(dict(space)))


def _source(event: Event) -> dict[str, Any] | None:
    """The call that made the deciding input, where it stands elsewhere than the birth itself."""
    facts = decisive(event)
    made = facts.get("from")
    frame = users(event.frames)
    if (
        not made
        or made["path"] is None
        or (frame is not None and (made["path"], made["line"]) == (frame.path, frame.line))
    ):
        return None
    return {**made, "path": relative(made["path"])}


def _at(told: dict[str, Any]) -> str:
    return f" at {told['path']}:{told['line']}" if told.get("path") else ""


def _event(event: Event) -> dict[str, Any]:
    """Op, function, module, place and ranges of an event."""
    frame = users(event.frames)
    told: dict[str, Any] = {
        "op": event.op,
        "call": event.call,
        "node": event.node,
        "module": event.module,
        "inputs": event.inputs,
        "output": event.output,
        "frames": [_short(f) for f in event.frames],
    }
    if frame is not None:
        told |= _short(frame)
    if event.frames and event.frames[0] is not frame:
        told["inner"] = _short(event.frames[0])
    return told


def users(frames: list[Frame]) -> Frame | None:
    """The innermost frame of the user's own files, else the innermost of all."""
    own = [f for f in frames if not os.path.realpath(f.path).startswith(_PACKAGES)]
    return next(iter(own or frames), None)


def _short(frame: Frame) -> dict[str, Any]:
    return {"path": relative(frame.path), "line": frame.line, "function": frame.function}


def relative(path: str) -> str:
    """``path`` from the working directory, if it lies below it."""
    full = os.path.abspath(path)
    try:
        here = os.getcwd() + os.sep
    except OSError:
        return full
    return full.removeprefix(here).replace(os.sep, "/")


def _outside(origin: Origin, attempt: Attempt, known: values.Known) -> dict[str, Any]:
    found = []
    for tensor in origin.outside[:MAX_LISTED]:
        reference = refer(tensor, attempt, known)
        found.append((reference, {"name": reference.name, "what": reference.what, **data.damage(tensor)}))
    order = {"variable": 0, "buffer": 1, "parameter": 2, "unknown": 3}
    found.sort(key=lambda pair: order[pair[0].what])
    if not found:
        return {"kind": "unknown", "phase": "unknown", "text": "the value came from outside the step"}
    reference, facts = found[0]
    kind = {"buffer": "buffer", "parameter": "weights", "unknown": "unknown"}.get(reference.what, "data")
    if kind == "data" and (origin.outside[0].grad_fn is not None or _carried(reference, attempt)):
        kind = "state"
    told: dict[str, Any] = {
        "kind": kind,
        "phase": {"unknown": "forward"}.get(kind, kind),
        "data": [f for _, f in found],
    }
    if origin.first is not None:
        met = _event(origin.first) if origin.first.frames else {"op": origin.first.op, "module": origin.first.module}
        told["met"] = {k: met.get(k) for k in ("op", "call", "module", "path", "line")}
        if not reference.root and met.get("path"):
            told |= {"path": met["path"], "line": met.get("line")}  # where it comes in
    if kind in ("weights", "buffer"):
        told["module"] = reference.name
    line, path = reference.line, reference.path
    if line is None and reference.root:
        line = attempt.frame.f_lineno
    if line is not None and path is not None:
        told |= {"path": relative(path), "line": line}
    sources = data.sources(attempt.frame, reference.root) if kind == "data" and reference.root else []
    if sources:
        told["sources"] = [s | {"path": relative(s["path"])} for s in sources]
    word = {"data": "the data", "state": "state of an earlier step", "buffer": "a buffer"}.get(kind, "a value")
    told["text"] = f"{word} is not finite before any computation: {reference.name}{_at(told)}, {data.words(facts)}"
    if sources:
        told["text"] += f"; already so in {sources[0]['name']} ({told['sources'][0]['path']}:{sources[0]['line']})"
    return told


def _carried(reference: Reference, attempt: Attempt) -> bool:
    return attempt.cut is not None and reference.root in attempt.cut.carried


__all__ = ["Reference", "describe", "refer", "relative", "tensors", "users"]
