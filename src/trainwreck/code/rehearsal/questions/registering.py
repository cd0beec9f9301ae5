"""Layers that a module holds where torch does not look: in lists, dicts, tuples and objects of other classes."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import LEAF, Items, Node, Obj, Table, Value, candidates, is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, ids, lives, reached, steps

MAX_DEPTH = 4


def in_plain_containers(run: Rehearsing) -> Iterator[Answer]:
    """Parameters that a backward reaches, that no optimizer holds, and that their module holds in a plain container."""
    learning = ids(p for e in backwards(run) for p in reached(e) if p.trainable is not False)
    taught = ids(p for e in steps(run) for p in held(e))
    if not learning or not taught or not lives(run).sure:
        return
    told: set[int] = set()
    for event in run.tape:
        module = event.subject
        if event.name != "set" or event.place is None or not isinstance(module, Obj) or not is_module(module):
            continue
        name, value = event.args[:2]
        if module.cls is None or module.attributes.get(name) is not value or is_module(value):
            continue
        hidden = ids(params_in(run, value)) - ids(run.parameters(module)[0])
        if not hidden or not hidden & learning or hidden & taught or id(event.place[0]) in told:
            continue
        plain = isinstance(value, Node) and LEAF in value.attributes
        if plain and any(n.op == "grad" and any(i is value for i in n.inputs) for n in run.nodes):
            continue  # it is moved by hand
        told.add(id(event.place[0]))
        what = "no nn.Parameter: it is" if plain else "no module: the parameters in it are"
        yield Answer(event.place, f"self.{name} is {what} not registered, and no optimizer gets what has to learn here")


def params_in(run: Rehearsing, value: Value, depth: int = 0) -> Iterator[Node]:
    """The parameters in a list, a dict, a tuple, or in an object that is no module."""
    if depth > MAX_DEPTH:
        return
    for one in candidates(value):
        match one:
            case Node() if one.op == "param":
                yield one
            case Obj() if is_module(one):
                yield from run.parameters(one)[0]
            case Obj() if one.cls is not None:
                for inner in one.attributes.values():
                    yield from params_in(run, inner, depth + 1)
            case Items():
                for inner in one.items:
                    yield from params_in(run, inner, depth + 1)
            case Table():
                for inner in one.entries.values():
                    yield from params_in(run, inner, depth + 1)
            case tuple():
                for inner in one:
                    yield from params_in(run, inner, depth + 1)
