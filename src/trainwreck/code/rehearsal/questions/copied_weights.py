"""Weights that the program calls tied, and copies: from the first step on they are two."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained
from trainwreck.code.scopes import Scope

TIED = pattern(r"(?<![a-z])[Tt]ie[ds]?(?![a-z])|\b[Tt]ying\b|[Ss]har\w+ (the )?(weight|embed)|[Ww]eight.?[Ss]haring")
"""Words for weights that are meant to be one."""
COPIES = frozenset(["clone", "copy", "deepcopy"])


def tied_by_copy(run: Rehearsing) -> Iterator[Answer]:
    """A weight that begins as a copy of another one which learns too, in a class that speaks of tied weights."""
    learning = ids(p for s in steps(run) for p in held(s)) & ids(n for n in trained(run) if n.op == "param")
    start = min((e.serial for e in run.tape if e.name == "backward"), default=0)
    for param in (n for n in run.nodes if n.op == "param" and id(n) in learning and n.trainable is not False):
        for value, place in _first_values(param, start):
            source = _copied(value, into=place is not param.place)
            if source is None or source is param or id(source) not in learning or not _says_so(place):
                continue
            text = "this copies the weight that it is meant to share: the two drift apart from the first step on"
            yield Answer(place, text)
            break


def _first_values(param: Node, start: int) -> Iterator[tuple[Value, Place]]:
    """What a parameter holds before training, with where that is written."""
    writes = [w for w in param.writes if w.name == "copy_" and w.serial < start and w.place is not None and w.args]
    if writes and writes[-1].place is not None:
        yield writes[-1].args[-1], writes[-1].place
    elif param.inputs and param.place is not None:
        yield param.inputs[0], param.place


def _copied(value: Value, *, into: bool) -> Node | None:
    """The parameter of which this is a copy; None where the memory is shared. ``into``: it is written into another."""
    node = next(iter(parts(value)), None)
    copied = into
    for _ in range(10):
        if node is None or node.op == "param":
            break
        copied = copied or node.op in COPIES
        first = node.inputs[0] if node.inputs and node.op in STRUCTURE | COPIES else None
        node = first if isinstance(first, Node) else None
    return node if copied else None


def _says_so(place: Place) -> bool:
    """True where the class around (or the function, outside of all) speaks of tied weights."""
    scope: Scope | None = place[1]
    while scope is not None and scope.kind != "class" and scope.parent is not None and scope.parent.kind != "module":
        scope = scope.parent
    node = scope.node if scope is not None else None
    if not isinstance(node, ast.ClassDef | ast.FunctionDef):
        return False
    lines = place[1].module.lines[node.lineno - 1 : node.end_lineno]
    return bool(TIED.search("\n".join(lines)))


def untied(run: Rehearsing) -> Iterator[Answer]:
    """A layer was given the weights of another one, and a new layer takes its place afterwards."""
    shared = [e for e in run.tape if e.name == "set" and e.args[:1] == ("weight",) and _of_another(run, e)]
    for tied in shared:
        for event in run.tape:
            old = event.options.get("old") if event.name == "set" and event.serial > tied.serial else None
            value = event.args[1] if len(event.args) > 1 else None
            anew = isinstance(value, Obj) and isinstance(old, Obj) and value.kind == old.kind and value is not old
            if old is not tied.subject or not anew or event.place is None or not steps(run):
                continue
            if (isinstance(value, Obj) and value.copy_of is old) or any(
                e.subject is value and e.args[:1] == ("weight",) for e in run.tape
            ):
                continue
            text = "the layer that shared the weights of another one is replaced by a new one here"
            yield Answer(event.place, text, (tied.place,) if tied.place is not None else ())
            return


def _of_another(run: Rehearsing, event: Event) -> bool:
    """True where the weights that a layer is given are those of another layer."""
    value = event.args[1] if len(event.args) > 1 else None
    owner = value.owner if isinstance(value, Node) and value.op == "param" else None
    return isinstance(owner, Obj) and owner is not event.subject and isinstance(event.subject, Obj)
