"""Methods of lists, dicts and texts."""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import (
    ASKED,
    MOST_ASKED,
    UNKNOWN,
    Items,
    NameTest,
    Node,
    Table,
    Turn,
    Value,
)
from trainwreck.code.rehearsal.library import method
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.rehearsal.storing import EXACT_ITEMS, EXACT_TURNS, GROUND, room


@method("list", "append", "add", "appendleft", "insert", "put")
def _append(run: Rehearsing, asked: Asked) -> Value:
    items: Items = asked.receiver
    run.event(asked.name, items, asked.args, {}, asked.place)
    if asked.args:
        if len(items.items) < room(asked.args[-1:]):
            front = asked.name == "appendleft" or (asked.name == "insert" and asked.args[0] == 0)
            items.items.insert(0 if front else len(items.items), asked.args[-1])
        else:
            items.more = True
    if run.maybe or any(t.generic for t in run.turns):
        items.more = True
    _count(run, items)
    return None


def _count(run: Rehearsing, items: Items) -> None:
    """A list that gets one element in each turn of a loop of known length has as many in the end."""
    begun: dict[int, tuple[Items, tuple[Turn, ...], int]] = run.memo.setdefault("appended", {})
    _, first, before = begun.get(id(items), (items, run.turns, len(items.items) - 1))
    begun[id(items)] = (items, first, before)
    turns = run.turns
    over = turns[-1].over if turns else None
    exact = isinstance(over, Items) and not over.more  # a loop that is gone through turn by turn
    known = items.length is not None and not exact
    if known or before or not turns or not (turns[-1].generic or exact) or run.maybe or not isinstance(over, Items):
        items.length = None
        return
    once = len(items.items) == turns[-1].index + 1 and turns[:-1] == first[:-1]
    count = over.length if over.more else len(over.items)
    begun_here = bool(first) and first[-1].node is turns[-1].node and first[-1].index == 0
    items.length = count if once and begun_here else None


@method("list", "extend", "update", "extendleft")
def _extend(run: Rehearsing, asked: Asked) -> Value:
    items: Items = asked.receiver
    found, more = run.elements(asked.args[0] if asked.args else UNKNOWN, asked.place, asked.frame)
    run.event(asked.name, items, asked.args, {}, asked.place)
    items.items = [*items.items, *found][: max(room(found), EXACT_ITEMS * 3)]
    items.more = items.more or more or bool(run.maybe)
    return None


@method("list", "pop", "popleft", "remove")
def _pop(run: Rehearsing, asked: Asked) -> Value:
    items: Items = asked.receiver
    run.event(asked.name, items, asked.args, {}, asked.place)
    if items.items and not items.more and asked.name != "remove" and not run.turns:
        return items.items.pop(0 if asked.name == "popleft" or asked.args == [0] else -1)
    items.more = True
    shapes = {v.shape.dims for v in items.items if isinstance(v, Node)}
    if len(shapes) > 1 and len(items.items) <= EXACT_ITEMS and all(isinstance(v, Node) for v in items.items):
        # activations kept for later, the last one first: which of them it is isn't followed in loops
        return run.node("either", items.items, asked.place)
    return items.items[-1] if items.items else UNKNOWN


@method("list", "reverse")
def _reverse(run: Rehearsing, asked: Asked) -> Value:
    run.event("reverse", asked.receiver, (), {}, asked.place)
    if not run.maybe:
        asked.receiver.items.reverse()
    return None


@method("list", "sort")
def _sort(run: Rehearsing, asked: Asked) -> Value:
    run.event("sort", asked.receiver, asked.args, asked.options, asked.place)
    return None


@method("list", "clear")
def _clear(run: Rehearsing, asked: Asked) -> Value:
    run.event("clear", asked.receiver, (), {}, asked.place)
    asked.receiver.items.clear()
    asked.receiver.more = bool(run.maybe)
    return None


@method("list", "copy")
def _list_copy(run: Rehearsing, asked: Asked) -> Value:
    return Items(list(asked.receiver.items), asked.receiver.more)


@method("dict", "items", "keys", "values")
def _views(run: Rehearsing, asked: Asked) -> Value:
    table: Table = asked.receiver
    keys = [k if not str(k).startswith("?") else run.node("key", (), asked.place) for k in table.entries]
    held = list(table.entries.values())
    rows: list[Value] = list(zip(keys, held, strict=True)) if asked.name == "items" else keys
    return Items(held if asked.name == "values" else rows, table.more)


@method("dict", "get", "pop", "setdefault")
def _get(run: Rehearsing, asked: Asked) -> Value:
    table: Table = asked.receiver
    key = asked.get("key", 0)
    default = asked.get("default", 1)
    if isinstance(key, GROUND) and key in table.entries:
        return table.entries[key]
    if isinstance(key, GROUND) and not table.more:
        if asked.name == "setdefault":
            table.entries[key] = default
        return default
    if asked.name == "setdefault" and isinstance(key, Node) and _by_length(asked.place[0]):
        table.entries.setdefault("?", default)
        table.numbered, table.stack = table.numbered or asked.place, table.stack or run.stack
        table.counted = (*table.counted[:3], key)
    elif asked.name == "setdefault":
        # what is then put into one of many entries can't be followed
        key_of_new = f"?{len(table.entries)}" if len(table.entries) < EXACT_TURNS else "?"
        table.entries.setdefault(key_of_new, default if len(table.entries) < EXACT_TURNS else UNKNOWN)
        table.more = True
    known = run.item(table, key, asked.place, asked.frame)
    return run.joined(known, default, asked.place) if asked.args[1:] or asked.options else known


def _by_length(call: ast.AST) -> bool:
    """True for ``setdefault(key, len(table) + 1)``: each new key gets the next number."""
    given = call.args[1:] if isinstance(call, ast.Call) else []
    calls = (n.func for a in given for n in ast.walk(a) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Name) and f.id == "len" for f in calls)


@method("dict", "update")
def _update(run: Rehearsing, asked: Asked) -> Value:
    table: Table = asked.receiver
    for value in asked.args:
        if isinstance(value, Table):
            table.entries |= value.entries
            table.more = table.more or value.more
        else:
            table.more = True
    table.entries |= asked.options
    return None


@method("dict", "copy")
def _dict_copy(run: Rehearsing, asked: Asked) -> Value:
    return Table(dict(asked.receiver.entries), asked.receiver.more)


@method("str", "format", "join", "split", "lower", "upper", "strip", "startswith", "endswith", "replace", "encode",
        "removeprefix", "removesuffix", "lstrip", "rstrip", "find", "rfind", "count")  # fmt: skip
def _text(run: Rehearsing, asked: Asked) -> Value:
    text, args = asked.receiver, asked.args
    plain = len(text) < 10_000 and all(isinstance(a, str | tuple) for a in args) and not asked.options
    if asked.name not in ("format", "join", "split", "encode") and plain:
        try:
            result = getattr(text, asked.name)(*args)
            tests = run.memo.setdefault(ASKED, [])
            if asked.name in ("startswith", "endswith") and asked.place is not None and len(tests) < MOST_ASKED:
                wanted = args[0] if isinstance(args[0], tuple) else (args[0],)
                tests += [NameTest(w, text, getattr(text, asked.name)(w), asked.place) for w in wanted]
            return result
        except (TypeError, ValueError):
            return UNKNOWN
    if asked.name == "split" and not asked.options and all(isinstance(a, str) and a for a in args):
        return Items(text.split(*args)[:EXACT_ITEMS])
    return run.node(asked.name, asked.given, asked.place)
