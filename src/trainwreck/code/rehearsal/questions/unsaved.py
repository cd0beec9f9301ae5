"""Statistics of the data that a module keeps as plain tensors: are they in what a new object of it is loaded from?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, candidates, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer

STATISTICS = frozenset(
    """mean std var std_mean var_mean median quantile nanmean nanmedian amax amin max min sum norm cov corrcoef lerp
    lerp_ mul_ add_ svd eigh cumsum bincount histc""".split()
)
"""What sums data up."""
HOOKS = (
    "state_dict load_state_dict get_extra_state set_extra_state _save_to_state_dict _load_from_state_dict __setattr__"
).split()
"""Methods by which a module decides itself what is saved of it."""
MAX_DEPTH = 6


def left_unsaved(run: Rehearsing) -> Iterator[Answer]:
    """A network learns statistics of its data, its ``state_dict`` goes into a new object, and that one computes with
    the numbers that it was made with.

    Silent where the new object is given any others, and where its class has a say in what is saved."""
    told: set[int] = set()
    for load in run.tape:
        if load.name != "load_state_dict" or not is_module(load.subject) or load.maybe:
            continue
        saved = _saved(run, load)
        if saved is None or saved.subject is load.subject or saved.subject.cls is not load.subject.cls:
            continue
        for old, new in _pairs(saved.subject, load.subject):
            for name, value in new.attributes.items():
                place = _begun(run, new, name, value)
                learned = _learned(run, old, name, load) if place is not None else None
                if (
                    place is None
                    or learned is None
                    or id(place[0]) in told
                    or not _used(run, new, value, learned, load)
                ):
                    continue
                told.add(id(place[0]))
                text = f"{name} is learned from the data and no buffer: the file lacks it, and the reloaded network"
                proof = tuple(p for p in (learned.place, load.place) if p is not None)
                yield Answer(place, f"{text} goes on with this value", proof)


def _saved(run: Rehearsing, load: Event) -> Event | None:
    """The ``state_dict()`` whose tensors come back."""
    behind = {id(n) for n in ancestors(load.get("state_dict", 0))}
    for event in reversed(run.tape):
        own = event.name == "state_dict" and event.serial < load.serial and is_module(event.subject)
        if own and any(id(n) in behind for n in parts(event.result)):
            return event
    return None


def _pairs(old: Obj, new: Obj, depth: int = 0) -> Iterator[tuple[Obj, Obj]]:
    """The modules of two networks of one class that have the same place in them, those of the program's own classes."""
    if old is new or old.cls is not new.cls or depth > MAX_DEPTH:
        return
    if old.cls is not None:
        if any(old.cls.find(hook) is not None for hook in HOOKS):
            return
        yield old, new
    for name, inner in old.attributes.items():
        other = new.attributes.get(name)
        if isinstance(inner, Obj) and isinstance(other, Obj) and is_module(inner) and is_module(other):
            yield from _pairs(inner, other, depth + 1)


def _sets(run: Rehearsing, owner: Obj, name: str) -> list[Event]:
    return [e for e in run.tape if e.name == "set" and e.subject is owner and e.args and e.args[0] == name]


def _constant(value: Value) -> bool:
    """True for what is made of no data: a number, or a tensor that is written out."""
    return value is None or type(value) in (int, float) or (isinstance(value, Node) and value.op in MADE)


MADE = frozenset("zeros ones full empty tensor zeros_like ones_like eye new_zeros new_ones".split())


def _begun(run: Rehearsing, new: Obj, name: str, value: Value) -> Place | None:
    """Where the constructor gave the attribute the constant that it still has."""
    sets = _sets(run, new, name) if _constant(value) else []
    if not sets or sets[-1].args[1] is not value:
        return None
    return sets[-1].place if all(e.place is not None and e.place[1].name == "__init__" for e in sets) else None


def _learned(run: Rehearsing, old: Obj, name: str, load: Event) -> Event | None:
    """What gave the attribute of the saved network a statistic of the data; None where it is a buffer or parameter."""
    sets = _sets(run, old, name)
    held = [c for e in sets for c in candidates(e.args[1])]
    if any(isinstance(v, Node) and v.op in ("buffer", "param", "unknown", "opaque") for v in held):
        return None
    later = [e for e in sets if e.serial < load.serial and e.place is not None and e.place[1].name != "__init__"]
    for event in later:
        value = event.args[1]
        if isinstance(value, Node) and any(_statistic(n) for n in ancestors(value)):
            return event
    return None


def _statistic(node: Node) -> bool:
    """True for what sums up a tensor that isn't made of weights alone."""
    if node.op not in STATISTICS or node.full.startswith("builtins.") or node.grad:
        return False
    return not any(n.op == "param" for n in ancestors(node.inputs))


def _used(run: Rehearsing, new: Obj, value: Value, learned: Event, load: Event) -> bool:
    """True if the new network computes with its own value after loading, where the saved one did with the statistic."""
    inside = [e for e in run.tape if e.name == "forward" and e.subject is new and e.serial > load.serial]
    if not inside:
        return False
    mine = {id(n.place[0]) for n in run.nodes if n.place is not None and _takes(n, value) and n.serial > load.serial}
    sets = _sets(run, learned.subject, learned.args[0])
    return any(
        n.place is not None and id(n.place[0]) in mine and any(_takes(n, e.args[1]) for e in sets) for n in run.nodes
    )


def _takes(node: Node, value: Value) -> bool:
    """True if a value goes into what ``node`` was computed from by itself."""
    return any(v is value for v in (*node.inputs, *node.options.values()))


__all__ = ["left_unsaved"]
