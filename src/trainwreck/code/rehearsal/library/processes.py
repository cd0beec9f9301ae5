"""Processes that a script starts: what one of them runs, with the number of its rank not known."""

from __future__ import annotations

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import Function, Node, Obj, Value
from trainwreck.code.rehearsal.library import METHODS, NOTHING, function
from trainwreck.code.rehearsal.rehearsing import Rehearsing

PROCESSES = (
    "multiprocessing.Process", "torch.multiprocessing.Process", "multiprocessing.context.SpawnProcess",
    "multiprocessing.process.BaseProcess", "threading.Thread",
)  # fmt: skip
RANKED = ("rank", "proc", "gpu", "worker", "local", "idx", "index")
"""Parts of a parameter's name that say: this is the number of the process."""


def _rank(run: Rehearsing, asked: Asked, name: str) -> Node:
    """The number of this process."""
    return run.node("argument", (), asked.place, name=f"rank {name}")


@function("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch.multiprocessing.spawn.spawn")
def _spawned(run: Rehearsing, asked: Asked) -> Value:
    target, given = asked.get("fn", 0), asked.get("args", 1, ())
    if not isinstance(target, Function) or not isinstance(given, tuple):
        return NOTHING
    if asked.get("nprocs", 2) == 1:
        run.call(target, [0, *given], {}, asked.place, asked.frame)
    else:
        run.call(target, [_rank(run, asked, "of this process"), *given], {}, asked.place, asked.frame)
    return None


def _started(run: Rehearsing, asked: Asked) -> Value:
    process = asked.receiver
    if not isinstance(process, Obj):
        return NOTHING
    target, given = process.options.get("target"), process.options.get("args", ())
    if not isinstance(target, Function):
        return NOTHING
    done = run.memo.setdefault("processes", set())
    if id(target.node) in done:
        return None  # the other ranks do the same
    done.add(id(target.node))
    values = list(given) if isinstance(given, tuple) else run.list_of(given)
    names = [a.arg for a in target.node.args.args]
    for number, name in enumerate(names[: len(values)]):
        if isinstance(values[number], int | Node) and any(part in name.lower() for part in RANKED):
            values[number] = _rank(run, asked, name)
    named = process.options.get("kwargs")
    options = dict(getattr(named, "entries", {}))
    for name, value in options.items():
        if isinstance(value, int | Node) and any(part in str(name).lower() for part in RANKED):
            options[name] = _rank(run, asked, str(name))
    run.call(target, values, options, asked.place, asked.frame)
    return None


METHODS.update({(kind, "start"): _started for kind in PROCESSES})
