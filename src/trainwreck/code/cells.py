"""Cells of notebooks: which cell a line stands in, and which names each cell needs and makes when run from the top."""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_right
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Walked
from trainwreck.core.row import Row

GIVEN = frozenset([*dir(builtins), "get_ipython", "display", "In", "Out", "_", "__", "___", "exit", "quit", "__file__"])
"""Names that IPython provides."""
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Need(Row):
    """A name that the top level of a cell reads, and where (if anywhere) the notebook makes it later."""

    node: ast.Name
    cell: int
    made_later: ast.AST | None


def cell_of(walked: Walked, node: ast.AST) -> int:
    return bisect_right(walked.top.module.cells or (), int(getattr(node, "lineno", 1)))


def unmet(project: Project, walked: Walked) -> Iterator[Need]:
    """Names that top-level code of a notebook reads before any cell above (or its own) makes them."""
    made: dict[str, list[ast.AST]] = {}
    for name, bindings in walked.top.bindings.items():
        made[name] = [b.node for b in bindings if b.kind not in ("append", "augment")]
    for scope in walked.scopes:
        for node in project.within(scope, ast.Global) if scope.kind == "function" else ():
            assert isinstance(node, ast.Global)
            for name in node.names:
                made.setdefault(name, []).append(walked.top.node)
    deleted: dict[str, int] = {}
    told: set[str] = set()
    for statement in walked.top.module.tree.body:
        for node in _run_now(statement):
            if not isinstance(node.ctx, ast.Load):
                if isinstance(node.ctx, ast.Del):
                    deleted[node.id] = node.lineno
                continue
            if node.id in GIVEN or node.id in told or _local(project, node, walked):
                continue
            places = made.get(node.id, [])
            lines = [int(getattr(p, "lineno", 0)) for p in places]
            gone = deleted.get(node.id, 0)
            if any(gone <= line <= node.lineno for line in lines) or (0 in lines):
                continue
            told.add(node.id)
            after = [p for p in places if getattr(p, "lineno", 0) > node.lineno]
            yield Need(node, cell_of(walked, node), after[0] if after else None)


def _run_now(statement: ast.stmt) -> Iterator[ast.Name]:
    """Names in what runs when the statement runs: not the bodies of functions, lambdas and classes."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Name):
            yield node
        if isinstance(node, FunctionNode):
            todo += [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        elif isinstance(node, ast.ClassDef):
            todo += [*node.decorator_list, *node.bases]
        elif not isinstance(node, ast.Lambda):
            todo = [*ast.iter_child_nodes(node), *todo]


def _local(project: Project, node: ast.Name, walked: Walked) -> bool:
    """True for the variable of a comprehension around ``node``, or an exception that a handler names."""
    for above in project.ancestors(node, walked.top):
        if isinstance(above, Comprehension):
            for generator in above.generators:
                if any(isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(generator.target)):
                    return True
        if isinstance(above, ast.ExceptHandler) and above.name == node.id:
            return True
        if isinstance(above, ast.Try) and any(_catches(h) for h in above.handlers):
            return True
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(
        isinstance(n, ast.Name) and n.id in ("NameError", "Exception", "BaseException") for n in ast.walk(handler.type)
    )
