"""argparse: which options a parser has, and whether these are all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.settings.parsers import Option, Parser, Takes, made, reached_modules
from trainwreck.code.settings.tree import UNKNOWN
from trainwreck.code.values import values

HARMLESS = frozenset(
    ["set_defaults", "error", "print_help", "format_help", "print_usage", "exit", "get_default", "description"]
)
GROUPS = frozenset(["add_argument_group", "add_mutually_exclusive_group"])
OPENING = frozenset(["parents", "fromfile_prefix_chars", "prefix_chars"])
MAX_DEPTH = 4
TYPES = frozenset(["int", "float", "str", "bool"])


class _Seen:
    """What was found while following a parser through the program."""

    def __init__(self) -> None:
        self.options: list[Option] = []
        self.closed = True
        self.parsed = False
        self.visited: set[tuple[int, str]] = set()
        self.namespaces: list[tuple[str, Scope]] = []
        self.defaults: set[str] = set()


def find(project: Project, path: str) -> Parser | None:
    """The parser of a script that has exactly one, made by ``argparse.ArgumentParser``."""
    reached = reached_modules(project, path)
    makers = [c for c in project.calls("ArgumentParser") if c.scope.module.path in reached]
    own = [c for c in makers if c.scope.module.path == path]
    makers = own or makers
    if len(makers) != 1 or project.called(makers[0]) not in ("argparse.ArgumentParser", "ArgumentParser"):
        return None
    call = makers[0]
    if project.resolve(call.node.func, call.scope) is not None:
        return None
    seen = _Seen()
    if any(k.arg in OPENING or k.arg is None for k in call.node.keywords):
        seen.closed = False
    _value(project, call.node, call.scope, seen, 0)
    if not seen.parsed:
        return None
    abbreviated = call.argument("allow_abbrev")
    prefixes = not (isinstance(abbreviated, ast.Constant) and abbreviated.value is False)
    defaults = frozenset(seen.defaults)
    return made("argparse", call.node, call.scope, seen.options, seen.closed, (), prefixes, seen.namespaces, defaults)


def _value(project: Project, node: ast.expr, scope: Scope, seen: _Seen, depth: int) -> None:
    """Follow the parser (or group) that the expression ``node`` gives."""
    above = project.parent(node, scope)
    match above:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if above.value is node:
            _name(project, name, scope, seen, depth)
        case ast.Attribute():
            _attribute(project, above, scope, seen, depth)
        case ast.Return() if isinstance(scope.node, FunctionNode) and depth < MAX_DEPTH:
            callers = project.callers(scope)
            for call in callers:
                _value(project, call.node, call.scope, seen, depth + 1)
            seen.closed = seen.closed and bool(callers)
        case ast.Expr():
            pass
        case _:
            seen.closed = False


def _name(project: Project, name: str, scope: Scope, seen: _Seen, depth: int) -> None:
    if (id(scope), name) in seen.visited or depth > MAX_DEPTH:
        return
    seen.visited.add((id(scope), name))
    if sum(b.kind == "assign" for b in scope.bindings.get(name, ())) > 1:
        seen.closed = False
    for node, where in _uses(project, name, scope):
        above = project.parent(node, where)
        if isinstance(above, ast.Attribute):
            _attribute(project, above, where, seen, depth)
        elif isinstance(above, ast.Return):
            _value(project, node, where, seen, depth)
        elif isinstance(above, ast.Call | ast.keyword):
            _handed_over(project, node, above, where, seen, depth)
        else:
            seen.closed = False


def _uses(project: Project, name: str, scope: Scope) -> Iterator[tuple[ast.Name, Scope]]:
    """Where the variable is read: in its scope and in those inside it that do not have one of their own."""
    todo = [scope]
    while todo:
        at = todo.pop()
        if at is not scope and at.kind == "function" and name in at.bindings:
            continue
        for node in project.within(at, ast.Name):
            assert isinstance(node, ast.Name)
            if node.id == name and isinstance(node.ctx, ast.Load):
                yield node, at
        todo += at.children


def _handed_over(
    project: Project, node: ast.Name, above: ast.Call | ast.keyword, scope: Scope, seen: _Seen, depth: int
) -> None:
    outer = above if isinstance(above, ast.Call) else project.parent(above, scope)
    target = project.resolve(outer.func, scope) if isinstance(outer, ast.Call) else None
    if not isinstance(outer, ast.Call) or target is None or target.kind != "function":
        seen.closed = False
        return
    names = target.positional
    if isinstance(above, ast.keyword):
        name = above.arg
    else:
        place = next((n for n, a in enumerate(outer.args) if a is node), None)
        shift = 1 if target.owner is not None and names[:1] in (["self"], ["cls"]) else 0
        name = names[place + shift] if place is not None and place + shift < len(names) else None
    if name is None or name not in target.params:
        seen.closed = False
        return
    _name(project, name, target, seen, depth + 1)
    _value(project, outer, scope, seen, depth + 1) if any(r is not None for r in target.returns) else None


def _attribute(project: Project, node: ast.Attribute, scope: Scope, seen: _Seen, depth: int) -> None:
    above = project.parent(node, scope)
    call = above if isinstance(above, ast.Call) and above.func is node else None
    if call is None:
        seen.closed = seen.closed and node.attr in HARMLESS
    elif node.attr == "add_argument":
        option = option_of(project, Call(call, scope))
        if option is None:
            seen.closed = False
        else:
            seen.options.append(option)
    elif node.attr == "parse_args":
        # of another list than that of the command line
        if call.args or any(k.arg == "args" for k in call.keywords):
            seen.closed = False
        seen.parsed = True
        _namespace(project, call, scope, seen)
    elif node.attr == "parse_known_args":
        seen.parsed, seen.closed = True, False
    elif node.attr == "set_defaults":
        seen.defaults |= {k.arg or "*" for k in call.keywords}
    elif node.attr in GROUPS:
        _value(project, call, scope, seen, depth)
    elif node.attr not in HARMLESS:
        seen.closed = False


def _namespace(project: Project, call: ast.Call, scope: Scope, seen: _Seen) -> None:
    """Remember the variable that gets what was parsed; "" where it goes elsewhere."""
    match project.parent(call, scope):
        case ast.Assign(targets=[ast.Name(id=name)]):
            seen.namespaces.append((name, scope))
        case ast.Return() if isinstance(scope.node, FunctionNode):
            for caller in project.callers(scope):
                above = project.parent(caller.node, caller.scope)
                if isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name):
                    seen.namespaces.append((above.targets[0].id, caller.scope))
                else:
                    seen.namespaces.append(("", caller.scope))
        case ast.Expr():
            pass
        case _:
            seen.namespaces.append(("", scope))


def option_of(project: Project, call: Call) -> Option | None:
    """The option that a call of ``add_argument`` declares; None where its names are not written out."""
    names: list[str] = []
    for item in call.node.args:
        if not isinstance(item, ast.Constant) or not isinstance(item.value, str):
            return None
        names.append(item.value)
    if not names or any(k.arg is None for k in call.node.keywords):
        return None
    positional = not names[0].startswith("-")
    long = next((n for n in names if n.startswith("--")), names[0])
    dest = _constant(call.argument("dest"))
    action, takes = _action(call)
    if action == "BooleanOptionalAction":
        names += [f"--no-{n[2:]}" for n in names if n.startswith("--")]
    return Option(
        tuple(names),
        dest if isinstance(dest, str) else long.lstrip("-").replace("-", "_"),
        call.node,
        call.scope,
        _type(project, call),
        _choices(project, call),
        takes,
        _constant(call.argument("required")) is True,
        _default(project, call, action),
        positional,
    )


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _action(call: Call) -> tuple[str, Takes]:
    given = call.argument("action")
    action = given.value if isinstance(given, ast.Constant) else given.attr if isinstance(given, ast.Attribute) else ""
    if given is not None and not action:
        return "", "unknown"
    if action in ("store_true", "store_false", "store_const", "append_const", "count", "help", "version"):
        return str(action), "nothing"
    if action == "BooleanOptionalAction":
        return str(action), "nothing"
    if action not in ("", "store", "append", "extend"):
        return str(action), "unknown"
    nargs = call.argument("nargs")
    if nargs is None:
        return str(action), "one"
    match _constant(nargs):
        case "?":
            return str(action), "maybe"
        case "*" | "+" | int():
            return str(action), "many"
    return str(action), "unknown"


def _type(project: Project, call: Call) -> str:
    given = call.argument("type")
    if given is None:
        return "str" if call.argument("action") is None else ""
    name = given.id if isinstance(given, ast.Name) else ""
    local = name in TYPES and not project.lookup(name, call.scope)
    return name if local else ""


def _choices(project: Project, call: Call) -> tuple[object, ...] | None:
    given = call.argument("choices")
    if given is None:
        return None
    found = values(project, given, call.scope)
    if len(found) == 1 and isinstance(found[0].value, tuple):
        return found[0].value
    return None


def _default(project: Project, call: Call, action: str) -> object:
    given = call.argument("default")
    if given is None:
        return {"store_true": False, "store_false": True}.get(action)
    found = values(project, given, call.scope)
    return found[0].value if len(found) == 1 else UNKNOWN
