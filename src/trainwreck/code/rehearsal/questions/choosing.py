"""Is the best of several results taken from a list, or the worst?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Bound, Event, Frame, Function, Items, Node, Obj, Place, Table, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.minimised import mark_objectives
from trainwreck.code.rehearsal.questions.selection import direction
from trainwreck.code.scopes import Scope

BEST = pattern(r"best|winner|select|chosen|choice|final|keep|kept|good|champion|optim", re.IGNORECASE)
OTHER = pattern(r"worst|hard|bad|drop|remove|old|limit|bound|scale|peak|range", re.IGNORECASE)
LOADS = pattern(r"load|restore|resume|from_pretrained|set_weights", re.IGNORECASE)
NUMPY = {"argmax": True, "argmin": False, "nanargmax": True, "nanargmin": False}
MAX_ELEMENTS = 6


def worst_chosen(run: Rehearsing) -> Iterator[Answer]:
    """``best = max(history)`` of losses: what is loaded or kept afterwards is the worst of them."""
    mark_objectives(run)
    told: set[int] = set()
    for place, elements, larger in _choices(run):
        if id(place[0]) in told:
            continue
        found = {direction(e) for e in elements}
        better = found.pop() if len(found) == 1 else None
        if better is None or larger is better or not _as_the_best(run, place):
            continue
        told.add(id(place[0]))
        what = "a share of hits" if better else "a loss or an error"
        yield Answer(place, f"this takes the {'largest' if larger else 'smallest'}, and what is compared is {what}")


def _choices(run: Rehearsing) -> Iterator[tuple[Place, list[Value], bool]]:
    """Where one of several is taken: the place, what is compared, and whether the largest is taken."""
    for event in run.tape:
        if event.name != "select" or event.place is None:
            continue
        larger = _end(run, event)
        elements = _compared(run, event) if larger is not None else []
        if elements and larger is not None:
            yield event.place, elements, larger
    for node in run.nodes:
        if node.op in NUMPY and node.place is not None and node.inputs:
            given = node.inputs[0]
            inner = given.inputs[0] if isinstance(given, Node) and given.op in ("array", "tensor", "asarray") else given
            elements = list(inner.items) if isinstance(inner, Items) else []
            if elements and all(isinstance(e, Node) for e in elements):
                yield node.place, elements[:MAX_ELEMENTS], NUMPY[node.op]


def _end(run: Rehearsing, event: Event) -> bool | None:
    """True where the largest is taken, False for the smallest, None where that is open."""
    if not event.full.endswith("sorted"):
        return event.full.endswith("max")
    assert event.place is not None
    index = _taken(run, event.place)
    reverse = event.options.get("reverse", False)
    if index is None or not isinstance(reverse, bool):
        return None
    return (index == "last") is not reverse


def _taken(run: Rehearsing, place: Place) -> str | None:
    """Which end of a sorted list is used: of the call itself, or of the name that it is given."""
    call, scope = place
    above = run.project.parent(call, scope)
    if isinstance(above, ast.Subscript):
        return _which(above.slice)
    name = _target(run, place)
    if not name:
        return None
    ends = {
        _which(n.slice) for n in scope.nodes
        if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and written(n.value) == name
    }  # fmt: skip
    return ends.pop() if len(ends) == 1 else None


def _which(index: ast.expr) -> str | None:
    match index:
        case ast.Constant(value=0):
            return "first"
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)):
            return "last"
        case ast.Slice(lower=None, upper=ast.expr(), step=None) if not isinstance(index.upper, ast.UnaryOp):
            return "first"
        case ast.Slice(lower=ast.UnaryOp(op=ast.USub()), upper=None, step=None):
            return "last"
    return None


def _compared(run: Rehearsing, event: Event) -> list[Value]:
    """The values by which the elements are compared, of a few of them."""
    given, key = event.args[0], event.options.get("key")
    assert event.place is not None
    if isinstance(given, Table):
        own = written(event.place[0]) if isinstance(event.place[0], ast.Call) else ""
        keyed = key is not None and re.search(r"key\s*=\s*[\w.]+\.(get|__getitem__)\b", own)
        if keyed:
            return [v for v in list(given.entries.values())[:MAX_ELEMENTS] if isinstance(v, Node)]
        elements: list[Value] = list(given.entries)
    elif isinstance(given, Items | tuple):
        elements = list(given.items) if isinstance(given, Items) else list(given)
    else:
        return []
    found: list[Value] = []
    for element in elements[:MAX_ELEMENTS]:
        value = _by_key(run, event, key, element)
        if not isinstance(value, Node):
            return []
        found.append(value)
    return found


def _by_key(run: Rehearsing, event: Event, key: Value, element: Value) -> Value:
    assert event.place is not None
    if key is None:
        return element[0] if isinstance(element, tuple) and element else element
    if isinstance(key, Function | Bound):
        before = len(run.tape)
        found = run.call(key, [element], {}, event.place, Frame(event.place[1], {}))
        del run.tape[before:]
        return found[0] if isinstance(found, tuple) and found else found
    if isinstance(key, Obj | Node) and _last(key) in ("itemgetter", "attrgetter"):
        index = key.args[0] if isinstance(key, Obj) and key.args else (*getattr(key, "inputs", ()), None)[0]
        if isinstance(element, tuple) and isinstance(index, int) and -len(element) <= index < len(element):
            return element[index]
        entries = getattr(element, "entries", getattr(element, "attributes", {}))
        return entries.get(index) if isinstance(entries, dict) else None
    return None


def _last(key: Obj | Node) -> str:
    return key.name if isinstance(key, Obj) else key.op


def _target(run: Rehearsing, place: Place) -> str:
    """The name that the statement around a call gives its value."""
    statement = run.project.statement(*place)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign | ast.NamedExpr):
        targets = [statement.target]
    return ", ".join(written(t) for t in targets)


def _as_the_best(run: Rehearsing, place: Place) -> bool:
    """True if what is taken is called the best, or loaded."""
    scope = place[1]
    name = _target(run, place)
    if OTHER.search(name) or OTHER.search(scope.name):
        return False
    statement = run.project.statement(*place)
    if LOADS.search(" ".join(written(n.func) for n in ast.walk(statement) if isinstance(n, ast.Call))):
        return True
    if not name:
        return isinstance(statement, ast.Return) and bool(BEST.search(scope.name))
    names = set(re.findall(r"[A-Za-z_]\w*", name))
    taken = [written(t) for n in scope.nodes if isinstance(n, ast.Assign) for t in n.targets
             if any(isinstance(i, ast.Name) and i.id in names for i in ast.walk(n.value))]  # fmt: skip
    return any(BEST.search(t) for t in (name, *taken)) or _loaded(scope, names)


def _loaded(scope: Scope, names: set[str]) -> bool:
    for node in scope.nodes:
        if isinstance(node, ast.Call) and LOADS.search(written(node.func)):
            used = {n.id for a in (*node.args, *(k.value for k in node.keywords)) for n in ast.walk(a)
                    if isinstance(n, ast.Name)}  # fmt: skip
            if used & names:
                return True
    return False
