"""Graphs that outlive their step: losses that are collected or added up with all that they were computed from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Table, Turn, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards, trained, users
from trainwreck.code.rehearsal.reshaping import flat_number

COLLECTS = frozenset(["concatenate", "append", "extend", "add", "appendleft", "insert", "put"])

EMPTIES = frozenset(["clear", "pop", "popleft", "remove"])
"""What takes elements out of a list again."""


def retained(run: Rehearsing) -> Iterator[Answer]:
    """Values with a graph that a loop over steps keeps, and no backward uses."""
    used = {id(n) for n in trained(run)}
    losses = {id(n) for e in backwards(run) for n in parts(e.subject)}
    for node in run.nodes:
        earlier = _added_up(run, node)
        if earlier is not None and id(node) not in used and _steps(run, earlier) and node.place is not None:
            yield Answer(node.place, "the sum keeps the graph of every step: nothing is cut off before it is added")
    yield from _comprehended(run)
    for event in run.tape:
        if event.name not in COLLECTS or not isinstance(event.subject, Items) or event.place is None:
            continue
        if not event.turns or (event.name == "concatenate" and not _stored_again(run, event)):
            continue
        kept = [n for a in event.args for n in parts(a) if n.grad and n.op not in ("param", "batch")]
        loop = event.turns[-1]
        if kept and not _steps(run, loop) and (lasting := _lasting(run, event)) is not None:
            loop = lasting
        elif not _outlives(event, event.subject):
            continue
        elif not _steps(run, loop) and _by_listener(loop):
            loop = next((t for t in reversed(event.turns) if _steps(run, t)), loop)
            if _made_within(event, loop):
                continue
        lost = [n for n in kept if id(n) in losses or flat_number(n)]
        if lost and _steps(run, loop) and not _used_later(run, lost, used, loop):
            text = "the list keeps the graph of every step: nothing is cut off before it is collected"
            place = _handed(run, event) or event.place
            yield Answer(place, text, (event.place,) if place is not event.place else ())


def _comprehended(run: Rehearsing) -> Iterator[Answer]:
    """``losses = [update(batch) for batch in batches]``, where ``update`` gives back the loss that it ran backward."""
    told: set[int] = set()
    for event in backwards(run):
        if not event.stack or event.place is None:
            continue
        asked, around = event.stack[-1]
        above = run.project.parent(asked, around)
        call, scope = event.place
        if not isinstance(above, ast.ListComp) or above.elt is not asked or id(above) in told:
            continue
        loss = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        given = [n for n in scope.nodes if isinstance(n, ast.Return) and isinstance(n.value, ast.Name)]
        for back in given:
            if isinstance(loss, ast.Name) and isinstance(back.value, ast.Name) and back.value.id == loss.id:
                told.add(id(above))
                text = "the loss comes back with its graph, and a list keeps those of all steps"
                yield Answer((back, scope), text, ((above, around),))


def _stored_again(run: Rehearsing, event: Event) -> bool:
    """True for ``losses = losses + [loss]``: the list grows, and is not cut to a window."""
    statement = run.project.statement(*event.place) if event.place is not None else None
    if not isinstance(statement, ast.Assign) or event.place is None or statement.value is not event.place[0]:
        return False
    names = {ast.unparse(t) for t in statement.targets}
    return any(isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n) in names for n in ast.walk(statement.value))


def _added_up(run: Rehearsing, node: Node) -> Turn | None:
    """The loop over which a sum grows: one side was computed in an earlier turn of it, both with a graph."""
    if node.op not in ("add", "cat", "stack", "maximum") or not node.grad or not node.turns or len(node.inputs) < 2:
        return None
    for side in node.inputs[:2]:
        for one in _scaled(side):
            if not one.grad or one.op in ("param", "batch", "either"):
                continue
            for turn in node.turns:
                before = next((t for t in one.turns if t.node is turn.node), None)
                if before is None or before.index >= turn.index:
                    continue
                if (one.op == node.op and one.place == node.place) or (flat_number(one) and _goes_on(run, node)):
                    return turn
    return None


def _scaled(value: Value) -> Iterator[Node]:
    """The value itself, or what was multiplied with numbers."""
    for node in parts(value):
        yield node
        if node.op in ("mul", "div") and node.inputs:
            yield from (n for i in node.inputs[:2] for n in parts(i))


def _goes_on(run: Rehearsing, node: Node) -> bool:
    """True where the sum is stored under the name that it was read from."""
    if node.place is None:
        return False
    statement = run.project.statement(*node.place)
    if not isinstance(statement, ast.Assign):
        return False
    targets = {ast.unparse(t) for t in statement.targets}
    read = {ast.unparse(n) for n in ast.walk(statement.value) if isinstance(n, ast.Name | ast.Attribute)}
    return bool(targets & read)


def _steps(run: Rehearsing, loop: Turn) -> bool:
    """True if the loop runs backward in each of its turns."""
    return any(e.name == "backward" and any(t.node is loop.node for t in e.turns) for e in run.tape)


def _lasting(run: Rehearsing, event: Event) -> Turn | None:
    """The loop of steps around the event where a later turn of it still has the list that this one adds to."""
    loop = next((t for t in reversed(event.turns) if _steps(run, t)), None)
    if loop is None or event.place is None:
        return None
    for other in run.tape:
        if other.name in EMPTIES and other.subject is event.subject:
            return None
        begun = other.name == "set" and any(t.node is loop.node for t in other.turns)
        if begun and _holds(other.options.get("old"), event.subject):
            return None
    root: ast.AST | None = event.place[0]
    while root is not None and not isinstance(root, ast.Name):
        root = getattr(root, "func", None) or getattr(root, "value", None)
    if root is not None and any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == root.id
                                for n in ast.walk(loop.node)):  # fmt: skip
        return None
    own = {t.index for e in run.tape if e.name == event.name and e.subject is event.subject for t in e.turns
           if t.node is loop.node}  # fmt: skip
    return loop if len(own) > 1 else None


def _holds(holder: Value, held: Value) -> bool:
    """True for the list itself, and for a table or list that it stands in."""
    inner = holder.items if isinstance(holder, Items) else holder.entries.values() if isinstance(holder, Table) else ()
    return holder is held or any(i is held for i in inner)


def _handed(run: Rehearsing, event: Event) -> Place | None:
    """The call that gives the value to a collector of the program, where the collector is given plain numbers too."""
    plain = [
        e for e in run.tape if e.place == event.place and e.args and not any(n.grad for a in e.args for n in parts(a))
    ]
    return event.stack[-1] if plain and event.stack else None


def _by_listener(loop: Turn) -> bool:
    """True for a loop over objects of the program that are told of a step (callbacks, hooks)."""
    return isinstance(loop.over, Items) and any(isinstance(i, Obj) for i in loop.over.items)


def _made_within(event: Event, loop: Turn) -> bool:
    """True for a list that a function made which the loop calls: each turn has its own."""
    place = getattr(event.subject, "place", None)
    around = [p[1] for p in (*event.stack, event.place) if p is not None]
    deeper = around[around.index(loop.scope) + 1 :] if loop.scope in around else around
    return place is not None and place[1] in deeper


def _outlives(event: Event, held: Items) -> bool:
    """True where the list was made outside of the loop around the event."""
    place = getattr(held, "place", None)
    loop = event.turns[-1].node
    return place is not None and not any(n is place[0] for n in ast.walk(loop))


def _used_later(run: Rehearsing, kept: list[Node], used: set[int], loop: Turn) -> bool:
    """True where what was collected is put together again and runs backward."""
    for node in kept:
        for user in users(run).get(id(node), ()):
            if user.op in ("stack", "cat", "sum", "add", "mean") and (id(user) in used or _feeds(run, user, used)):
                return True
    return False


def _feeds(run: Rehearsing, node: Node, used: set[int]) -> bool:
    return any(id(u) in used for u in users(run).get(id(node), ()))
