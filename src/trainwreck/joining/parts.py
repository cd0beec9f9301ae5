"""Modules by their path at run time (``Net.layers.0.fc``), found in the classes of the program."""

from __future__ import annotations

import ast
import re

from trainwreck.code.calls import Call, last_name
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import scope_at, statement_at
from trainwreck.joining.paths import top

Found = tuple[str, int]
INITIALISERS = re.compile(
    r"^(normal|uniform|constant|zeros|ones|xavier|kaiming|trunc_normal|orthogonal|eye|fill|copy)_?"
)
"""Functions of ``torch.nn.init`` and methods that give a tensor its first values."""


def made(project: Project, path: str) -> Found | None:
    """The line that makes the module at ``path``: the deepest attribute on the way that a class of the program sets."""
    names = [p for p in path.split(".") if p]
    if not names:
        return None
    owner = next((c for c in project.classes if c.name == _class_name(names[0], project)), None)
    found: Found | None = None
    for name in names[1:]:
        if owner is None or name.isdigit():
            if owner is None:
                break
            continue
        bindings = [b for b in owner.attributes.get(name, ()) if b.kind in ("assign", "append") and b.value is not None]
        if not bindings:
            break
        found = (bindings[0].scope.module.path, bindings[0].line)
        owner = _class_made(project, bindings[0].value, bindings[0].scope)
    return found


def _class_name(name: str, project: Project) -> str:
    """``Net2`` at run time is the second ``Net``."""
    plain = name.rstrip("0123456789")
    return name if any(c.name == name for c in project.classes) else plain


def _class_made(project: Project, value: ast.expr | None, scope: Scope) -> Scope | None:
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Call):
            owner = project.resolve(node.func, scope)
            if owner is not None and owner.kind == "class":
                return owner
    return None


def initialised(project: Project, path: str) -> Found | None:
    """The line that gives the parameters of the module at ``path`` their first values, where just one does.

    It names the attribute, or stands in a function that is applied to all modules.
    """
    names = [p for p in path.split(".")[1:] if p and not p.isdigit()]
    calls = [c for c in _initialisers(project) if not _harmless(c)]
    near = [c for c in calls if any(re.search(rf"\b{re.escape(n)}\b", ast.unparse(c.node)) for n in names)]
    given = [c for c in calls if any(isinstance(n, ast.Constant) for a in _values(c) for n in ast.walk(a))]
    for group in (near, calls, given, [c for c in given if c.name in ("constant_", "fill_")]):
        if len({(c.scope.module.path, c.line) for c in group}) == 1:
            return group[0].scope.module.path, group[0].line
    return None


def _values(call: Call) -> list[ast.expr]:
    """Arguments after the tensor, and those by name."""
    return [*call.node.args[1:], *(k.value for k in call.node.keywords)]


def _initialisers(project: Project) -> list[Call]:
    found = []
    for walked in project.walked.values():
        for node, scope in walked.calls:
            name = last_name(node.func)
            if name and name.endswith("_") and INITIALISERS.match(name):
                found.append(Call(node, scope))
    return found


def _harmless(call: Call) -> bool:
    """Zero for a bias, one for a scale: what everybody does."""
    return call.name in ("zeros_", "ones_", "copy_") or (
        call.name in ("constant_", "fill_")
        and isinstance(value := (call.argument("val", 1) or call.argument("value", 0)), ast.Constant)
        and value.value in (0, 1, 0.0, 1.0)
    )


def constructed(project: Project, path: str) -> Found | None:
    """The first line outside of classes that makes an object of the class that ``path`` begins with."""
    name = _class_name(path.split(".")[0], project)
    calls = [c for c in project.calls(name) if c.scope.kind != "class"]
    return (calls[0].scope.module.path, calls[0].line) if calls else None


def attribute(project: Project, name: str) -> Found | None:
    """The line that sets ``self.<name>``, where the classes of the program agree on one."""
    found = {(b.scope.module.path, b.line) for c in project.classes for b in c.attributes.get(name, ())}
    return found.pop() if len(found) == 1 else None


REFERENCE = re.compile(r"ref|old|frozen|anchor|base_?line|initial", re.IGNORECASE)


def second_name(project: Project) -> Found | None:
    """``reference = model``: the line, where just one gives a name of a reference to what has a name already."""
    found = set()
    for scope in project.scopes:
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                plain = binding.kind == "assign" and isinstance(binding.value, ast.Name | ast.Attribute)
                if plain and not binding.path and REFERENCE.search(name):
                    found.add((scope.module.path, binding.line))
    return found.pop() if len(found) == 1 else None


def loop(project: Project, path: str | None, line: int | None) -> Found | None:
    """The head of the innermost loop around a line."""
    module = top(project, path)
    if module is None or line is None:
        return None
    statement = statement_at(module.module.tree, line)
    if statement is None:
        return None
    around = loops(project, statement, scope_at(module, line))
    return (module.module.path, around[-1].lineno) if around else None
