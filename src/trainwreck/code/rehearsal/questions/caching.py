"""Decoding with kept keys and values: positions of new tokens, masks, and what is fed with the cache."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, core

ATTENTION = frozenset(["scaled_dot_product_attention"])
LENGTHS = frozenset(["size", "len", "attribute", "counter", "add", "sub", "getitem", "part"])


def cached(run: Rehearsing) -> Iterator[tuple[Event, Node]]:
    """Calls of a network in which keys of an earlier call are joined with new ones, each with that join."""
    outer = sorted((e for e in run.tape if e.name == "forward"), key=lambda e: e.serial)
    serials = [e.serial for e in outer]
    for node in run.nodes:
        if node.op not in JOINS or not node.inputs:
            continue
        items = list(parts(node.inputs[0]))
        if len(items) != 2 or not all(_computed(i) for i in items):
            continue
        old, new = items
        between = outer[bisect_right(serials, old.serial) : bisect_left(serials, new.serial)]
        alike = _same_source(old, new)
        around = [e for e in between if (alike or _gave(e, old)) and _inside(e, node)]
        if around:
            yield around[0], node


def _same_source(old: Node, new: Node) -> bool:
    """True where the same line made both: keys of an earlier call, kept by the module itself."""
    place = new.place[0] if new.place is not None else None
    return any(n.place is not None and n.place[0] is place for n in (old, *core(old)))


def _computed(node: Node) -> bool:
    return any(n.op == "param" for n in near(node, 60))


def _gave(event: Event, value: Node) -> bool:
    """True where the call was given ``value`` in one of its arguments."""
    for given in (*event.args, *event.options.values()):
        if any(n is value or any(m is n for m in near(value, 8)) for n in _deep(given)):
            return True
    return False


def _deep(value: Value) -> Iterator[Node]:
    yield from parts(value)


def _inside(event: Event, node: Node) -> bool:
    """True where the value is computed in the course of the call."""
    if node.turns[: len(event.turns)] != event.turns:
        return False  # the same call, in an earlier turn
    return len(node.stack) > len(event.stack) and node.stack[: len(event.stack)] == event.stack


def positions(run: Rehearsing) -> Iterator[Answer]:
    """Positions of new tokens that start at zero although a cache is given."""
    told: set[int] = set()
    for event, join in cached(run):
        for node in run.nodes:
            if node.op != "arange" or node.serial < event.serial or node.serial > join.serial:
                continue
            if node.place is None or id(node.place[0]) in told or not _inside(event, node):
                continue
            start = node.inputs[0] if len(node.inputs) > 1 and not isinstance(node.inputs[1], str) else 0
            if start != 0 or not _positional(run, node) or _moved(run, node):
                continue
            told.add(id(node.place[0]))
            place = _left_to_the_call(run, node) or node.place
            yield Answer(place, "with a cache the positions of new tokens start at zero again",
                         tuple(p for p in (node.place, join.place) if p is not None and p is not place))  # fmt: skip
            return


def _left_to_the_call(run: Rehearsing, node: Node) -> Place | None:
    """The call that leaves out where the positions begin, of a function that asks for it and takes zero without."""
    from trainwreck.code.rehearsal.questions.roles import users

    starts: list[ast.expr] = []
    at = [node]
    for _ in range(5):
        for one in at:
            written = one.place[0] if one.place is not None else None
            if isinstance(written, ast.BinOp) and one.op == "add":
                starts += [written.left, written.right]
            elif isinstance(written, ast.Call) and one is node and len(written.args) > 1:
                starts.append(written.args[0])
        at = [u for n in at for u in users(run).get(id(n), ()) if u.op in STRUCTURE | {"add"} and u.stack == node.stack]
    names = {s.id for s in starts if isinstance(s, ast.Name)}
    scope = node.place[1] if node.place is not None else None
    for call, around in reversed(node.stack):
        if scope is None or not isinstance(scope.node, FUNCTIONS) or not isinstance(call, ast.Call):
            return None
        listed = scope.node.args
        wanted = [a.arg for a in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs) if a.arg in names]
        if len(wanted) != 1:
            return None
        given = _given(call, scope.node, wanted[0])
        if given is None:
            return call, around
        if not isinstance(given, ast.Name):
            return (call, around) if isinstance(given, ast.Constant) else None
        names, scope = {given.id}, around
    return None


def _given(call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> ast.expr | None:
    """What a call gives a parameter; None where it leaves it to the default."""
    named = next((k.value for k in call.keywords if k.arg in (name, None)), None)
    if named is not None or any(isinstance(a, ast.Starred) for a in call.args):
        return named or call.args[0]
    listed = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if name not in listed:
        return None
    at = listed.index(name) - (1 if listed[0] in ("self", "cls") else 0)
    return call.args[at] if at < len(call.args) else None


def table_from_the_start(run: Rehearsing) -> Iterator[Answer]:
    """Rows of a table of positions that are read from the first on although a cache is given."""
    for event, join in cached(run):
        if not event.turns:
            continue
        for node in run.nodes:
            if node.op != "getitem" or node.serial < event.serial or node.serial > join.serial or node.place is None:
                continue
            table = node.inputs[0]
            index = node.inputs[1][0] if isinstance(node.inputs[1], tuple) and node.inputs[1] else node.inputs[1]
            if not isinstance(table, Node) or table.op not in ("buffer", "param") or not _inside(event, node):
                continue
            if not isinstance(index, Obj) or index.kind != "builtins.slice" or index.args[1] is None:
                continue
            if index.args[0] not in (None, 0) or not _used_with(run, node, event, join):
                continue
            place = event.place if _from_argument(node) and event.place is not None else node.place
            yield Answer(place, "with a cache the positions of new tokens start at zero again",
                         tuple(p for p in (node.place, join.place) if p is not None))  # fmt: skip
            return


def _used_with(run: Rehearsing, node: Node, event: Event, join: Node) -> bool:
    """True for rows that meet what is attended over: added to it, or multiplied with it."""
    from trainwreck.code.rehearsal.questions.roles import users

    after = users(run).get(id(node), ())
    return any(u.op in ("add", "mul") and event.serial < u.serial < join.serial for u in after)


def _from_argument(node: Node) -> bool:
    """True where a parameter of the function says where the rows begin."""
    place = node.place
    if place is None or not isinstance(place[0], ast.Subscript) or not isinstance(place[1].node, FUNCTIONS):
        return False
    cut = place[0].slice.elts[0] if isinstance(place[0].slice, ast.Tuple) and place[0].slice.elts else place[0].slice
    lower = cut.lower if isinstance(cut, ast.Slice) else None
    names = {a.arg for a in (*place[1].node.args.args, *place[1].node.args.kwonlyargs)}
    return isinstance(lower, ast.Name) and lower.id in names


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _positional(run: Rehearsing, node: Node) -> bool:
    """True where the numbers look up or make embeddings that are added."""
    from trainwreck.code.rehearsal.questions.roles import users

    table = users(run)
    at = [node]
    for _ in range(8):
        following = [u for n in at for u in table.get(id(n), ())]
        if any(u.op in ("embedding", "sin", "cos", "outer") or (u.op == "getitem" and u.inputs[1:2] and any(
            u.inputs[1] is n for n in at)) for u in following):  # fmt: skip
            return True
        at = [u for u in following if u.op in STRUCTURE | {"mul", "div", "einsum", "matmul"} or _plus_zero(u)]
    return False


def _moved(run: Rehearsing, node: Node) -> bool:
    """True where something is added to the numbers before they are used."""
    from trainwreck.code.rehearsal.questions.roles import users

    table = users(run)
    at = [node]
    for _ in range(5):
        following = [u for n in at for u in table.get(id(n), ())]
        sums = [u for u in following if u.op in ("add", "sub")]
        nothing = [u for u in sums if _plus_zero(u)]
        if len(nothing) < len(sums):
            return True
        at = [u for u in following if u.op in STRUCTURE or u in nothing]
    return False


def _plus_zero(node: Node) -> bool:
    return node.op in ("add", "sub") and any(type(i) is int and i == 0 for i in node.inputs[:2])


def masks(run: Rehearsing) -> Iterator[Answer]:
    """Causal attention of one new query over cached keys: it sees the first key only."""
    for _, join in cached(run):
        for node in run.nodes:
            if node.op not in ATTENTION or node.serial < join.serial or node.options.get("is_causal") is not True:
                continue
            keys = node.inputs[1] if len(node.inputs) > 1 else None
            if isinstance(keys, Node) and any(n is join for n in near(keys, 8)) and node.place is not None:
                text = (
                    "is_causal aligns queries and keys at the first: with a cache new queries see the oldest keys only"
                )
                yield Answer(node.place, text, (join.place,) if join.place is not None else ())
                return


def fed_again(run: Rehearsing) -> Iterator[Answer]:
    """The whole sequence is fed together with the cache of its beginning."""
    told: set[int] = set()
    for event, join in cached(run):
        if event.place is None or id(event.place[0]) in told or event.state.get("grad"):
            continue
        ids = next((n for a in event.args[:1] for n in parts(a)), None)
        grown = ids
        for _ in range(4):
            if grown is not None and grown.op == "either":
                grown = next((n for i in grown.inputs for n in parts(i) if n.op in JOINS), None)
        if grown is not None and grown.op in JOINS and event.turns:
            items = list(parts(grown.inputs[0]))
            if len(items) == 2 and any(n.op in ("argmax", "multinomial", "sample") for n in near(items[1], 8)):
                told.add(id(event.place[0]))
                yield Answer(_given_again(event.place), "the whole sequence is fed again together with the keys of its "
                             "beginning", (join.place,) if join.place is not None else ())  # fmt: skip
                return


def _given_again(place: Place) -> Place:
    """Where the name that is fed gets the whole sequence by another name; else the call."""
    call, scope = place
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    if not isinstance(first, ast.Name):
        return place
    for node in ast.walk(scope.node):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name) or len(node.targets) != 1:
            continue
        if node.lineno > first.lineno and ast.unparse(node.targets[0]) == first.id:
            return node, scope
    return place
