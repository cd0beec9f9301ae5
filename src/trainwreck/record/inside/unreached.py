"""Parameters that an optimizer holds and that get no gradient, sorted by what was seen of their modules' calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from .calls import Call, Calls
from .names import short

if TYPE_CHECKING:
    from .recorder import Recorder
    from .watched import Watched

MAX_NAMED = 4


def tell(recorder: Recorder, watched: Watched, dead: list[str], step: int) -> None:
    """Events for the parameters named ``dead``: one of how many they are, and one for each way in which it came.

    ``live-ran-without-graph``: their modules ran where gradients are off, at that line. ``live-result-cut-off``: they
    ran with a graph that does not reach the loss; ``frames`` are the lines of the call, innermost first.
    ``live-module-never-called`` (adapters: ``live-adapter-never-called``): nothing called them. Experts of which others
    were called are told by nobody: whether they are needed is for the data to say.
    """
    calls = next((p for p in recorder.probes if isinstance(p, Calls)), None)
    everything = len(dead) == len(watched.names)
    if calls is None or not calls.seen:
        _whole(recorder, watched, dead, everything, step)
        return
    names = set(dead)
    owners = _owners(recorder, watched, names)
    kinds: dict[str, list[tuple[str, Call | None]]] = {"without": [], "cut": [], "never": [], "idle": [], "unknown": []}
    for name in dead:
        found = owners.get(name)
        kinds[_kind(found, calls) if found is not None else "unknown"].append((name, _call(found, calls)))
    kinds["cut"] = [pair for pair in kinds["cut"] if not _last_of_a_stack(pair[0], watched.names, names)]
    told = [n for kind, group in kinds.items() if kind not in ("idle", "never") for n, _ in group]
    if told:
        _whole(recorder, watched, told, everything and len(told) == len(dead), step)
    if kinds["without"]:
        place = next((c.off for _, c in kinds["without"] if c is not None and c.off is not None), None)
        first = kinds["without"][0][0]
        text = f"{_listed(kinds['without'])}: gradients are off while they run"
        facts: dict[str, Any] = {"path": place[0], "line": place[1]} if place is not None else {}
        recorder.event("live-ran-without-graph", text, first, step=step, **facts)
    if kinds["cut"]:
        name, call = kinds["cut"][0]
        frames = call.frames if call is not None else []
        facts = {"path": frames[0][0], "line": frames[0][1]} if frames else {}
        text = f"{_listed(kinds['cut'])}: they run with a graph, which does not reach the loss"
        recorder.event("live-result-cut-off", text, name, step=step, frames=[list(f) for f in frames], **facts)
        if everything and calls.alternates(watched):
            text = "no gradient comes back through the other model to the one of this optimizer"
            recorder.event("live-no-gradient-through-other-model", text, name, step=step, **facts)
    if kinds["never"]:
        from .wiring import ADAPTER

        first = kinds["never"][0][0]
        adapters = any(ADAPTER.search(n) for n, _ in kinds["never"]) or _low_rank(watched, kinds["never"])
        kind = "live-adapter-never-called" if adapters else "live-module-never-called"
        text = f"{_listed(kinds['never'])}: the optimizer holds them and nothing calls their modules"
        recorder.event(kind, text, first, step=step)


def _whole(recorder: Recorder, watched: Watched, dead: list[str], everything: bool, step: int) -> None:
    if everything:
        text = "no parameter of the optimizer gets a gradient"
        recorder.event("live-no-gradient-at-all", text, None, step=step)
    else:
        text = f"{len(dead)} of {len(watched.names)} parameters get no gradient: {', '.join(dead[:MAX_NAMED])}"
        recorder.event("live-no-gradient", text, dead[0], step=step)


def _listed(group: list[tuple[str, Call | None]]) -> str:
    names = [n for n, _ in group]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{', '.join(names[:2])}{more} get no gradient"


def _owners(recorder: Recorder, watched: Watched, names: set[str]) -> dict[str, list[Any]]:
    """For each named parameter the module that holds it and those around it, innermost first."""
    wanted = {id(p): n for p, n in zip(watched.parameters, watched.names, strict=True) if n in names}
    found: dict[str, list[Any]] = {}
    for root in recorder.names.roots:
        modules = {short(path): module for path, module in root.named_modules()}
        for path, module in modules.items():
            for parameter in module._parameters.values():
                name = wanted.get(id(parameter)) if parameter is not None else None
                if name is not None and name not in found:
                    parts = path.split(".") if path else []
                    around = [modules.get(".".join(parts[:k])) for k in range(len(parts), -1, -1)]
                    found[name] = [m for m in around if m is not None]
    return found


def _kind(around: list[Any], calls: Calls) -> str:
    call = _call(around, calls)
    if call is not None:
        return "cut" if call.with_graph else "without"
    for inner, outer in pairwise(around):
        if not isinstance(outer, torch.nn.ModuleList | torch.nn.ModuleDict):
            continue
        brothers = [m for m in outer._modules.values() if m is not None and m is not inner and type(m) is type(inner)]
        if any(_ran(b, calls) for b in brothers):
            return "idle"
    return "never"


def _last_of_a_stack(name: str, held: Sequence[str], dead: set[str]) -> bool:
    """True for a part of the last block whose results only a next block would use: the same part of all the blocks
    before gets a gradient, and so does the rest of this one (``rounds.2.shift``; nothing moves after it)."""
    for found in re.finditer(r"(?<=\.)\d+(?=\.)", name):
        begin, end, last = name[: found.start()], name[found.end() :], int(found.group())
        before = [f"{begin}{k}{end}" for k in range(last)]
        after = f"{begin}{last + 1}{end}"
        rest = [n for n in held if n.startswith(f"{begin}{last}.") and n not in dead]
        if before and rest and after not in held and all(n in held and n not in dead for n in before):
            return True
    return False


def _call(around: list[Any] | None, calls: Calls) -> Call | None:
    """The call of the module that holds the parameter; of a part that torch's own layers read (the projection of an
    attention), that of the layer."""
    if not around:
        return None
    call = calls.of(around[0])
    if call is None and len(around) > 1 and type(around[1]).__module__.startswith("torch.nn.modules"):
        call = calls.of(around[1])
    return call


def _ran(module: Any, calls: Calls) -> bool:
    return any(calls.of(m) is not None for m in module.modules())


def _low_rank(watched: Watched, group: list[tuple[str, Call | None]]) -> bool:
    """True for pairs of factors with a small side in common, of which one is zero: what LoRA looks like."""
    held = dict(zip(watched.names, watched.parameters, strict=True))
    factors = [held[n] for n, _ in group if held[n].dim() == 2]
    thin = [p for p in factors if 4 * min(p.shape) <= max(p.shape)]
    return len(thin) >= 2 and len(thin) == len(group) and any(not bool(p.detach().any()) for p in thin)
