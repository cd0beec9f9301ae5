"""The line that takes a result out of the graph, searched from the call of the module outwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from trainwreck.code.calls import last_name
from trainwreck.code.order import turns_off
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import scope_at
from trainwreck.joining.paths import top

METHODS = frozenset(
    ["detach", "detach_", "item", "numpy", "tolist", "argmax", "argmin", "round", "long", "int", "sign"]
)
"""Methods whose result has no gradient."""
FUNCTIONS = frozenset(["argmax", "argmin", "round", "sign", "tensor", "from_numpy", "bincount", "one_hot", "floor"])
Found = tuple[str, int]


def find(project: Project, frames: Sequence[Found]) -> Found | None:
    """The first line after the call, in the innermost function that has one, that leaves the graph behind.

    ``frames``: where the module was called, innermost function first; a cut may stand on that very line.
    """
    for path, line in frames:
        module = top(project, path)
        if module is None:
            continue
        scope = scope_at(module, line)
        lines = sorted({n for n, strong in _cuts(project, scope) if n >= line and strong})
        weak = sorted({n for n, _ in _cuts(project, scope) if n >= line})
        around = [n for n in _contexts(project, scope, line)]
        for group in (around, lines, weak):
            if group:
                return module.module.path, group[0]
    return None


def _cuts(project: Project, scope: Scope) -> Iterator[tuple[int, bool]]:
    """(line, whether it is meant to cut) of everything that can. Numbers that are logged are taken out as well."""
    for node in scope.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
            yield node.lineno, True
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if isinstance(node.func, ast.Attribute) and name in METHODS:
                yield (
                    node.lineno,
                    name in ("detach", "detach_", "argmax", "argmin") and not _logged(project, node, scope),
                )
            elif name in FUNCTIONS:
                yield node.lineno, False


def _logged(project: Project, node: ast.Call, scope: Scope) -> bool:
    """True for a value that goes on as a number: ``x.detach().mean().item()``, or into a print."""
    for above in project.ancestors(node, scope):
        if isinstance(above, ast.Call) and last_name(above.func) in (
            "item",
            "float",
            "print",
            "append",
            "log",
            "tolist",
        ):
            return True
        if isinstance(above, ast.stmt):
            return isinstance(above, ast.Expr)
    return False


def _contexts(project: Project, scope: Scope, line: int) -> list[int]:
    """Lines of contexts without gradients around ``line``."""
    found = []
    for node in scope.nodes:
        if isinstance(node, ast.With) and node.lineno <= line <= (node.end_lineno or node.lineno):
            found += [node.lineno for item in node.items if turns_off(item.context_expr)]
    return found
