"""The class of what a list, a ModuleList or a loop over them holds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from trainwreck.code.calls import last_name
from trainwreck.code.scopes import Path, Scope

if TYPE_CHECKING:
    from trainwreck.code.project import Project

MAX_DEPTH = 12


def element_class(project: Project, value: ast.expr, path: Path, scope: Scope, depth: int) -> Scope | None:
    """The class of the elements of a list, ModuleList or the like."""
    if depth > MAX_DEPTH:
        return None
    match value:
        case ast.Call():
            name, args = last_name(value.func), value.args
            part = path[1] if len(path) > 1 else None
            if name == "zip" and isinstance(part, int) and part < len(args):
                return element_class(project, args[part], path[:1], scope, depth + 1)
            if name == "enumerate" and part == 1 and args:
                return element_class(project, args[0], path[:1], scope, depth + 1)
            if name in ("ModuleList", "list", "tuple", "reversed", "Sequential") and args:
                inner = args[0]
                return element_class(project, inner, path[:1], scope, depth + 1)
        case ast.ListComp() | ast.GeneratorExp():
            return project.class_of(value.elt, scope, depth + 1)
        case ast.List() | ast.Tuple() if value.elts:
            return project.class_of(value.elts[0], scope, depth + 1)
        case ast.Name() | ast.Attribute():
            for binding in project.bindings(value, scope):
                if binding.value is not None and not binding.path and binding.kind == "assign":
                    found = element_class(project, binding.value, path, binding.scope, depth + 1)
                    if found is not None:
                        return found
    return None
