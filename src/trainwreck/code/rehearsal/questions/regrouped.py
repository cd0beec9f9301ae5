"""An optimizer's state that is loaded into one whose parameters are grouped otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Table, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer


def other_groups(run: Rehearsing) -> Iterator[Answer]:
    """``load_state_dict`` of an optimizer that has other groups at that time than the one the state was taken from."""
    for event in run.tape:
        into = event.subject
        if event.name != "load_state_dict" or not isinstance(into, Obj) or not is_optimizer(into) or not event.args:
            continue
        if isinstance(event.args[0], Table) and "param_groups" in event.args[0].entries:
            continue  # the program puts the state together anew
        states = [n for n in ancestors(event.args[0]) if n.op == "state_dict" and n.inputs]
        taken = [(n.inputs[0], n.serial) for n in states if isinstance(n.inputs[0], Obj) and is_optimizer(n.inputs[0])]
        here = _sizes(run, into, event.serial)
        there = [_sizes(run, source, serial) for source, serial in taken]
        if here is None or not there or any(t is None or t == here for t in there) or event.place is None:
            continue
        source = taken[0][0]
        found, saved = len(here), len(there[0] or [])
        if found != saved:
            text = f"the state that is loaded into this has {saved} parameter groups, and this has {found}"
        else:
            text = f"the groups of the state that is loaded hold {there[0]} parameters, and those of this hold {here}"
        place: Place = into.place or event.place
        yield Answer(place, text, tuple(p for p in (source.place, event.place) if p is not None))


def _sizes(run: Rehearsing, optimizer: Obj, serial: int) -> list[int] | None:
    """How many parameters each group of an optimizer holds at a moment; None where that isn't known."""
    groups = run.groups(optimizer)
    adds = [e for e in run.tape if e.name == "add_param_group" and e.subject is optimizer]
    if groups is None or groups.more or any(e.maybe for e in adds):
        return None
    late = sum(e.serial > serial for e in adds)
    sizes = [_count(g) for g in groups.items[: len(groups.items) - late]]
    return None if None in sizes else [s for s in sizes if s is not None]


def _count(group: Value) -> int | None:
    params = group.entries.get("params") if isinstance(group, Table) else None
    if not isinstance(params, Items) or params.more or params.length is not None:
        return None
    known = all(isinstance(p, Node) and p.op == "param" for p in params.items)
    return len(params.items) if known else None
