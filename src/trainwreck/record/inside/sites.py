"""Where a frame stands in its source, and statements of that source made into code that runs on its own."""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

CLASS = "__trainwreck_class__"
"""Name under which a slice finds the class of its method, for ``super()``."""
PARTS = ("body", "orelse", "handlers", "finalbody", "cases")


class NoSlice(Exception):
    """This frame can't be cut: no source, or it only passes the loss on."""


@dataclass(slots=True)
class Site:
    """The statement that a frame is executing, where it stands, and the call within it."""

    scope: ast.AST
    chain: list[tuple[ast.AST, str, int]]
    """From the scope to the statement: (node, field, index) at each level of nesting."""
    statement: ast.stmt
    call: ast.Call | None
    owner: str | None
    """Class in which the function is defined."""


def site(code: CodeType, instruction: int, tree: ast.Module | None = None) -> Site:
    """Where ``code`` stands at ``instruction`` (``f_lasti``). Raises NoSlice where the source does not tell."""
    tree = tree or parse(code.co_filename)
    scope, owner = _scope(tree, code)
    positions = list(code.co_positions())
    at = positions[instruction // 2] if 0 <= instruction // 2 < len(positions) else (None,) * 4
    line, end, column, end_column = at
    if line is None:
        raise NoSlice("no position")
    chain: list[tuple[ast.AST, str, int]] = []
    node: ast.AST = scope
    while True:
        inner = _inner(node, line, column or 0)
        if inner is None:
            break
        chain.append((node, inner[0], inner[1]))
        node = getattr(node, inner[0])[inner[1]]
    if not isinstance(node, ast.stmt) or not chain:
        raise NoSlice("no statement there")
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    same = [n for n in calls if (n.lineno, *_ends(n)) == (line, end, end_column)]
    same = [n for n in same if n.col_offset == column] or same
    # The method may have been asked for and not yet been called: then the position is that of the function's name.
    asked = [n for n in calls if _ends(n.func) == (end, end_column)]
    found = [*same, *asked] or (calls if len(calls) == 1 else [])
    return Site(scope, chain, node, found[0] if found else None, owner)


def _ends(node: ast.expr) -> tuple[int | None, int | None]:
    return node.end_lineno, node.end_col_offset


_trees: dict[str, ast.Module] = {}


def parse(path: str) -> ast.Module:
    """The syntax tree of a file, as Python's line cache has it (cells of notebooks too). Raises NoSlice."""
    if path not in _trees:
        text = "".join(linecache.getlines(path))
        if not text:
            raise NoSlice(f"no source for {path}")
        try:
            _trees[path] = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as problem:
            raise NoSlice(f"{path}: {problem}") from None
    return _trees[path]


def _scope(tree: ast.Module, code: CodeType) -> tuple[ast.AST, str | None]:
    if code.co_name == "<module>":
        return tree, None
    todo: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while todo:
        node, owner = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return node, owner
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        todo += [(child, inner) for child in ast.iter_child_nodes(node)]
    raise NoSlice(f"{code.co_name} is not in its file")


def _inner(node: ast.AST, line: int, column: int) -> tuple[str, int] | None:
    """Field and index of the statement within ``node`` that covers a position (several may share a line).

    Definitions are not entered.
    """
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and line < node.body[0].lineno:
        return None
    for part in PARTS:
        for index, child in enumerate(getattr(node, part, None) or []):
            end = (child.end_lineno or child.lineno, child.end_col_offset or 0)
            if (child.lineno, child.col_offset) <= (line, column) < end:
                return part, index
    return None


def compiled(
    statements: Sequence[ast.stmt], code: CodeType, owner: str | None, namespace: dict[str, Any]
) -> list[CodeType]:
    """One code object for each statement, with the file and the lines that it came from. Raises NoSlice."""
    first = code.co_varnames[0] if code.co_argcount else None
    if "__class__" in namespace:
        namespace[CLASS] = namespace["__class__"]
    flags = code.co_flags & 0x1FF0000  # from __future__ imports of the file
    found = []
    for statement in statements:
        node = _Adapt(owner, first).visit(copy.deepcopy(statement))
        tree = ast.fix_missing_locations(ast.Module(body=[node], type_ignores=[]))
        try:
            found.append(compile(tree, code.co_filename, "exec", flags, dont_inherit=True))
        except (SyntaxError, ValueError, TypeError) as problem:
            raise NoSlice(f"{code.co_filename}:{statement.lineno}: {problem}") from None
    return found


class _Adapt(ast.NodeTransformer):
    """Makes statements of a function run at the top level: no return, ``super()`` and private names spelt out."""

    def __init__(self, owner: str | None, first: str | None) -> None:
        self.owner, self.first, self.loops = owner, first, 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.loops += 1
        self.generic_visit(node)
        self.loops -= 1
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return node if self.loops else ast.copy_location(ast.Pass(), node)

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return node if self.loops else ast.copy_location(ast.Pass(), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.first:
            node.args = [ast.Name(id=CLASS, ctx=ast.Load()), ast.Name(id=self.first, ctx=ast.Load())]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self.owner and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self.owner.lstrip('_')}{node.attr}"
        return node
