"""click: the options of a script with one command."""

from __future__ import annotations

import ast

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.parsers import Option, Parser, Takes, made
from trainwreck.code.settings.tree import UNKNOWN
from trainwreck.code.values import values

OTHERS = frozenset(["command", "option", "argument", "version_option", "pass_context", "help_option", "no_grad"])
_TYPES = {"int": "int", "float": "float", "str": "str", "bool": "bool", "INT": "int", "FLOAT": "float", "STRING": "str"}


def find(project: Project, path: str) -> Parser | None:
    """The options of the only click command that the script defines."""
    commands = []
    for scope in project.functions:
        if scope.module.path != path:
            continue
        names = [last_name(d) for d in scope.decorators]
        if "group" in names:
            return None
        if "command" in names and any(project.dotted(_bare(d), scope).startswith("click.") for d in scope.decorators):
            commands.append(scope)
    return _command(project, commands[0]) if len(commands) == 1 else None


def _bare(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _command(project: Project, scope: Scope) -> Parser | None:
    options: list[Option] = []
    outer = scope.parent or scope
    closed = True
    for item in scope.decorators:
        name = last_name(item)
        if name not in OTHERS:
            closed = False
        if not isinstance(item, ast.Call):
            continue
        call = Call(item, outer)
        if name == "command":
            closed = closed and call.argument("context_settings") is None and call.argument("cls") is None
        elif name in ("option", "argument"):
            option = _option(project, call, name == "argument")
            if option is None:
                closed = False
            else:
                options.append(option)
    help_option = Option(("--help",), "help", scope.node, outer, takes="nothing")
    return made("click", scope.node, outer, [*options, help_option], closed, (), False)


def _option(project: Project, call: Call, positional: bool) -> Option | None:
    names = [a.value for a in call.node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if len(names) != len(call.node.args) or not names or any(k.arg is None for k in call.node.keywords):
        return None
    written = [part.strip() for n in names if n.startswith("-") for part in n.split("/")]
    plain = next((n for n in names if not n.startswith("-")), "")
    long = next((n for n in written if n.startswith("--")), written[0] if written else plain)
    switch = any("/" in n for n in names if n.startswith("-"))
    flag = call.argument("is_flag")
    takes: Takes = "one"
    if switch or (isinstance(flag, ast.Constant) and flag.value is True) or call.argument("count") is not None:
        takes = "nothing"
    elif call.argument("nargs") is not None:
        takes = "many"
    elif call.argument("flag_value") is not None or (flag is not None and not isinstance(flag, ast.Constant)):
        takes = "unknown"
    kind, choices = _type(project, call)
    default = call.argument("default")
    found = values(project, default, call.scope)
    if isinstance(default, ast.Constant) and isinstance(default.value, bool) and call.argument("type") is None:
        takes = "nothing" if takes == "nothing" else "unknown"
    required = call.argument("required")
    needed = isinstance(required, ast.Constant) and required.value is True
    return Option(
        tuple(written) or (plain,),
        plain or long.lstrip("-").replace("-", "_"),
        call.node,
        call.scope,
        kind,
        choices,
        takes,
        needed or (positional and required is None and default is None and takes == "one"),
        found[0].value if len(found) == 1 else UNKNOWN,
        positional,
    )


def _type(project: Project, call: Call) -> tuple[str, tuple[object, ...] | None]:
    given = call.argument("type")
    if given is None:
        default = call.argument("default")
        if isinstance(default, ast.Constant) and type(default.value) in (int, float):
            return type(default.value).__name__, None
        return "", None
    if isinstance(given, ast.Call) and last_name(given.func) == "Choice":
        inner = Call(given, call.scope)
        found = values(project, inner.argument("choices", 0), call.scope)
        strict = inner.argument("case_sensitive") is None
        if strict and len(found) == 1 and isinstance(found[0].value, tuple):
            return "str", found[0].value
        return "", None
    return _TYPES.get(last_name(given), ""), None
