"""Environment variables that a program is given: exported in scripts, `%env` in notebooks, `os.environ` in Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainwreck.code.project import Project
from trainwreck.code.rule import at
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.index import of
from trainwreck.code.settings.shell import HOLE, Command, Variable
from trainwreck.code.settings.tree import Place
from trainwreck.code.values import values


@dataclass(frozen=True, eq=False)
class Assigned:
    """One assignment of an environment variable. ``text`` is None where the value is not known."""

    name: str
    text: str | None
    place: Place
    name_place: Place
    node: ast.AST | None = None
    scope: Scope | None = None


def assigned(project: Project) -> Sequence[Assigned]:
    """All assignments over scripts, notebooks and Python, once each."""
    if "assigned" not in project.memo:
        found = [*_shell(project), *_python(project)]
        project.memo["assigned"] = list({(a.name, a.place): a for a in found}.values())
    known: Sequence[Assigned] = project.memo["assigned"]
    return known


def _shell(project: Project) -> Iterator[Assigned]:
    settings = of(project)
    for path, found in settings.scripts:
        seen: set[tuple[str, Place]] = set()
        for command in _with_last(found):
            for name, value in command.env.items():
                if (name, value.place) not in seen and value.words is None and value.place.path == path:
                    seen.add((name, value.place))
                    yield _variable(name, value)


def _with_last(found: Sequence[Command]) -> Sequence[Command]:
    return found


def _variable(name: str, value: Variable) -> Assigned:
    place = value.place
    start = max(1, place.column - len(name) - 1)
    named = Place(place.path, place.line, start, start + len(name), place.cell)
    return Assigned(name, None if HOLE in value.text else value.text, place, named)


def _python(project: Project) -> Iterator[Assigned]:
    for path, walked in project.walked.items():
        if "environ" not in walked.top.module.text and "putenv" not in walked.top.module.text:
            continue
        for scope in walked.scopes:
            for node in project.within(scope, ast.Assign):
                assert isinstance(node, ast.Assign)
                for target in node.targets:
                    if isinstance(target, ast.Subscript) and _is_environ(project, target.value, scope):
                        yield from _made(project, target.slice, node.value, node, scope)
        for call, scope in walked.calls:
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr == "setdefault" and len(call.args) == 2:
                if _is_environ(project, func.value, scope):
                    yield from _made(project, call.args[0], call.args[1], call, scope)
            elif isinstance(func, ast.Attribute) and func.attr == "update" and _is_environ(project, func.value, scope):
                for item in call.args:
                    if isinstance(item, ast.Dict):
                        for key, value in zip(item.keys, item.values, strict=True):
                            if key is not None:
                                yield from _made(project, key, value, call, scope)
        del path


def _is_environ(project: Project, node: ast.expr, scope: Scope) -> bool:
    return project.dotted(node, scope) in ("os.environ", "environ")


def _made(project: Project, key: ast.expr, value: ast.expr, node: ast.AST, scope: Scope) -> Iterator[Assigned]:
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return
    known = values(project, value, scope)
    text = known[0].value if len(known) == 1 and isinstance(known[0].value, str) else None
    yield Assigned(key.value, text, _place(value, scope), _place(key, scope), node, scope)


def _place(node: ast.expr, scope: Scope) -> Place:
    path, line, column, cell = at(node, scope)
    width = (node.end_col_offset or 0) - node.col_offset if node.end_lineno == node.lineno else 1
    return Place(path, line, column, column + max(width, 1), cell)
