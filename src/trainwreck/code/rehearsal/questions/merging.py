"""Low-rank updates that are written into the weights: are they counted twice afterwards?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Table, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import PASSES, Pair, pairs
from trainwreck.code.rehearsal.questions.roles import users
from trainwreck.code.rehearsal.questions.terms import number_of

WRITES = frozenset(["loads", "inplace", "add_", "sub_", "copy_", "addmm_", "baddbmm_"])
RESETS = frozenset(
    """zeros_ zero_ constant_ fill_ normal_ uniform_ copy_ kaiming_uniform_ kaiming_normal_ xavier_uniform_
    xavier_normal_ trunc_normal_ orthogonal_ mul_ setitem""".split()
)
"""What gives a matrix other values after a merge, so that the same update is not added again."""


def merged_twice(run: Rehearsing) -> Iterator[Answer]:
    """An update was added to the weights, and the forward adds it again, or a second merge does."""
    found = pairs(run)
    if not found:
        return
    loads = _loads(run)
    for weight in [n for n in run.nodes if n.op == "param" and (n.writes or id(n) in loads)]:
        added: list[tuple[Event, Pair]] = []
        undone: list[tuple[Event, Pair]] = []
        for event in sorted((*weight.writes, *loads.get(id(weight), ())), key=lambda e: e.serial):
            pair = _merged(event, weight, found)
            if pair is None or event.place is None:
                continue
            if _taken_off(event, weight):
                undone += [a for a in added if _same(a[1], pair)]
                added = [a for a in added if not _same(a[1], pair)]
                continue
            before = next((e for e, p in added if _same(p, pair) and not _reset(pair, e.serial, event.serial)), None)
            if before is not None and not before.maybe and not event.maybe and _again(before, event):
                text = "the update was already added to these weights: it is merged a second time"
                yield Answer(_called(event, before), text, (before.place,) if before.place is not None else ())
                return
            added.append((event, pair))
        for event, pair in (*added, *undone):
            later = _run_after(run, event, pair, found, weight)
            if later is not None and event.place is not None and not event.maybe:
                text = "the update is added to the weights here, and the layer goes on adding it in its forward"
                if _flagged(event.place, later):
                    text = "the update is in the weights once it was merged; the forward does not ask and adds it again"
                    yield Answer(later, text, (event.place,))
                    return
                yield Answer(event.place, text, (later,))
                return


def _flagged(merge: Place, forward: Place) -> bool:
    """True where the merge notes in an attribute that it was done, and the forward does not read it."""
    noted = {
        t.attr
        for n in ast.walk(merge[1].node)
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, bool)
        for t in n.targets
        if isinstance(t, ast.Attribute)
    }
    read = {n.attr for n in ast.walk(forward[1].node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    return bool(noted) and not noted & read


def _loads(run: Rehearsing) -> dict[int, list[Event]]:
    """Weights that were computed from the state of a network and are loaded into it, as writes into its parameters."""
    found: dict[int, list[Event]] = {}
    for event in run.tape:
        given = event.get("state_dict", 0) if event.name == "load_state_dict" and is_module(event.subject) else None
        if not isinstance(given, Table):
            continue
        for name, param in run.named(event.subject):
            value = given.entries.get(name)
            if isinstance(value, Node) and value.op != "state" and value.place is not None:
                written = replace(event, name="loads", args=(param, value), place=value.place)
                found.setdefault(id(param), []).append(written)
    return found


def _again(before: Event, event: Event) -> bool:
    """True where the second merge is not the same line in a loop that may go round once only."""
    return before.place is not event.place


def _called(event: Event, before: Event) -> Place:
    """Where the two chains of calls part: the line that asks for the second merge.

    A mode may be set again and again: a merge in ``train`` or ``eval`` itself has to ask whether it was done."""
    for place in (*event.stack, event.place):
        owner = place[1].owner if place is not None else None
        if place is not None and owner is not None and place[1].name in ("train", "eval"):
            return place
    for here, there in zip(event.stack, before.stack, strict=False):
        if here[0] is not there[0]:
            return here
    assert event.place is not None
    return event.place


def _merged(event: Event, weight: Node, found: list[Pair]) -> Pair | None:
    """The pair whose product is written into the weights."""
    if event.name not in WRITES:
        return None
    given = event.args[1:] if event.name == "loads" else event.args
    inside = {id(n) for a in given for n in ancestors(a, through=lambda n: n.op != "param")}
    for pair in found:
        if id(pair.node) in inside and pair.outer is not weight and pair.inner is not weight:
            return pair
    return None


def _same(one: Pair, other: Pair) -> bool:
    return one.outer is other.outer and one.inner is other.inner


def _taken_off(event: Event, weight: Node) -> bool:
    if event.name == "sub_":
        return True
    alpha = event.options.get("alpha")
    if isinstance(alpha, int | float) and alpha < 0:
        return True
    for value in event.args[:1]:
        if isinstance(value, Node) and value.op == "sub":
            return True
        if isinstance(value, Node) and (value.op == "neg" or (value.op == "mul" and _negative(value))):
            return True
        if isinstance(value, Node) and event.name in ("copy_", "inplace"):
            return not any(n is weight for n in ancestors(value, through=lambda n: n.op != "param"))
    return False


def _negative(node: Node) -> bool:
    return any((number := number_of(i)) is not None and number < 0 for i in node.inputs)


def _reset(pair: Pair, start: int, end: int) -> bool:
    """True where one of the two matrices was given other values in between."""
    return any(e.name in RESETS and start < e.serial < end for p in (pair.outer, pair.inner) for e in p.writes)


def _run_after(run: Rehearsing, event: Event, pair: Pair, found: list[Pair], weight: Node) -> Place | None:
    """Where the update is added once more to what the merged weights give."""
    table = users(run)
    undone = [
        e.serial for e in weight.writes if e.serial > event.serial and e.name in (*WRITES, "setitem", "load_state_dict")
    ]
    for later in found:
        if not _same(later, pair) or later.node.serial < event.serial or later.node.maybe or later.node.place is None:
            continue
        if any(u < later.node.serial for u in undone) or _reset(pair, event.serial, later.node.serial):
            continue
        queue, seen = [later.node], 0
        while queue and seen < 40:
            node = queue.pop(0)
            for user in table.get(id(node), ()):
                seen += 1
                if user.op == "add" and any(_through(i, weight) for i in user.inputs[:2] if i is not node):
                    return user.place or later.node.place
                applied = user.op in ("linear", "matmul") and not any(i is weight for i in user.inputs)
                if user.op in PASSES or applied or (user.op in ("mul", "div") and _nonzero(user)):
                    queue.append(user)
    return None


def _nonzero(node: Node) -> bool:
    return all(number_of(i) is None or number_of(i) != 0 for i in node.inputs)


def _through(value: Value, weight: Node) -> bool:
    """True for the weights themselves, or the output of a layer that has them."""
    for _ in range(8):
        if not isinstance(value, Node):
            return False
        if value is weight:
            return True
        if any(i is weight for i in value.inputs):
            return True
        value = value.inputs[0] if value.op in PASSES and value.inputs else None
    return False
