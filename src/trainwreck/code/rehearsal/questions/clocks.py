"""What counts the turns in an expression of the program, and the program with a number in its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Frame, Function, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions.counts import number

MAX_REPLACED = 200


def changes(value: Node) -> bool:
    return any(n.op == "counter" or n.turns for n in ancestors(value))


def worked_out(run: Rehearsing, node: ast.expr, frame: Frame, names: dict[str, Value]) -> ast.expr:
    """The expression behind a name that holds the rate: ``lr = ...; group["lr"] = lr``."""
    for _ in range(3):
        value = value_of(node, frame, names) if isinstance(node, ast.Name) else None
        if not isinstance(node, ast.Name) or not isinstance(value, Node) or counter(value):
            break
        given = [n for n in frame.scope.nodes if isinstance(n, ast.Assign) and len(n.targets) == 1]
        given = [n for n in given if isinstance(n.targets[0], ast.Name) and n.targets[0].id == node.id]
        if len(given) != 1:
            break
        node = given[0].value
    return node


def counter(value: Value, depth: int = 0) -> bool:
    """True for a number that counts turns."""
    if not isinstance(value, Node) or depth > 40:
        return False
    if value.op in ("add", "sub") and len(value.inputs) == 2 and isinstance(value.inputs[1], int):
        return isinstance(value.inputs[0], int) or counter(value.inputs[0], depth + 1)
    if value.op == "either":  # counted up in some of the turns only
        return all(isinstance(c, int) or counter(c, depth + 1) for c in candidates(value)[-2:])
    return value.op == "counter"


def clocks(run: Rehearsing, node: ast.expr, frame: Frame, names: dict[str, Value]) -> list[str]:
    """Names (and attributes of objects) in an expression that change from turn to turn."""
    found: list[str] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load):
            value = value_of(part, frame, names)
            text = ast.unparse(part)
            if isinstance(value, Node) and number(run, value) is None and changes(value) and text not in found:
                if not counter(value):
                    return []
                found.append(text)
    return found or _inner_clocks(node, frame, names)


def _inner_clocks(node: ast.expr, frame: Frame, names: dict[str, Value]) -> list[str]:
    """What counts in the function that an expression calls: an attribute of its object, or a name around it."""
    found: list[str] = []
    for part in ast.walk(node):
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Name | ast.Attribute):
            continue
        function = function_of(part.func, frame, names)
        if function is None or isinstance(function.node, ast.Lambda):
            continue
        args = function.node.args.args
        base = value_of(part.func.value, frame, names) if isinstance(part.func, ast.Attribute) else None
        own = {args[0].arg: base} if args and isinstance(base, Obj) else {}
        for inner in (n for s in function.node.body for n in ast.walk(s)):
            if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Load):
                value = value_of(inner, Frame(function.scope, own, function.frame), own)
                text = ast.unparse(inner)
                if counter(value) and text not in found:
                    found.append(text)
    return found


def function_of(func: ast.expr, frame: Frame, names: dict[str, Value]) -> Function | None:
    found = value_of(func, frame, names)
    if found is None and isinstance(func, ast.Attribute):
        base = value_of(func.value, frame, names)
        found = base.cls.find(func.attr) if isinstance(base, Obj) and base.cls is not None else None
    return found if isinstance(found, Function) else None


def value_of(node: ast.expr, frame: Frame, names: dict[str, Value]) -> Value:
    if isinstance(node, ast.Name):
        at: Frame | None = frame.parent
        if node.id in names:
            return names[node.id]
        while at is not None:
            if node.id in at.names:
                return at.names[node.id]
            at = at.parent
        return None
    if isinstance(node, ast.Attribute):
        base = value_of(node.value, frame, names)
        return base.attributes.get(node.attr) if isinstance(base, Obj) else None
    return None


@contextmanager
def numbers_at(run: Rehearsing, frames: Sequence[Frame], clock: str, k: int) -> Iterator[None]:
    """Names and attributes in sight hold numbers where these are known, and the clock stands at ``k``."""
    held: list[tuple[dict[str, Value], str, Value]] = []
    objects: dict[int, Obj] = {}
    for at in _around(frames):
        for name, value in at.names.items():
            if isinstance(value, Obj) and value.cls is not None:
                objects[id(value)] = value
            known = number(run, value) if isinstance(value, Node) and len(held) < MAX_REPLACED else None
            known = float(k) if name == clock and counter(value) else known
            if known is not None:
                held.append((at.names, name, value))
                at.names[name] = int(known) if float(known).is_integer() else known
    for key, obj in objects.items():
        for name, value in obj.attributes.items():
            mine = "." in clock and clock.rpartition(".")[2] == name and isinstance(value, Node)
            known = float(k) if mine else number(run, value) if isinstance(value, Node) else None
            if known is not None and key:
                held.append((obj.attributes, name, value))
                obj.attributes[name] = int(known) if float(known).is_integer() else known
    try:
        yield
    finally:
        for names, name, value in held:
            names[name] = value


def _around(frames: Sequence[Frame]) -> list[Frame]:
    """The frames, and those around them, each once."""
    found: list[Frame] = []
    for frame in frames:
        at: Frame | None = frame
        while at is not None and at not in found:
            found.append(at)
            at = at.parent
    return found


def zero_written(node: ast.AST) -> bool:
    """True for a zero that is written out as one of two ways, or as the first: somebody waits on purpose (a frozen
    part, a critic that is ahead)."""
    inner = list(ast.walk(node))
    returns = sorted((n for n in inner if isinstance(n, ast.Return)), key=lambda n: n.lineno)
    ways = [way for n in inner if isinstance(n, ast.IfExp) for way in (n.body, n.orelse)]
    ways += [n.value for n in returns[:1] if n.value is not None and len(returns) > 1]
    return any(isinstance(w, ast.Constant) and type(w.value) in (int, float) and w.value == 0 for w in ways)


def called_in(node: ast.expr, frame: Frame, names: dict[str, Value]) -> Place | None:
    """The function of the program that works the rate out."""
    for part in ast.walk(node):
        function = function_of(part.func, frame, names) if isinstance(part, ast.Call) else None
        if function is not None:
            return (function.node, function.scope)
    return None
