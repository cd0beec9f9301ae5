"""Where a number that a run used is written in its program: the reverse of following a name to its value.

What a recording saw (a learning rate, the factor of a term) is searched among the constants of the program. It works
where no trace of names does: options in dictionaries, data classes, command lines, loops over names.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence

from trainwreck.code.calls import last_name
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

PRECISION = 1e-6
"""Relative difference within which a number is the same one: what is kept in single precision is rounded by 6e-8."""
COMMON = frozenset([0.0, 1.0, 2.0, 0.5, 10.0, 100.0, -1.0, 3.0, 4.0])
"""Numbers that stand in any program for other reasons: only the name beside them can tell."""
NAMED, ONLY = 2, 1


class Written(Row):
    """A number in the program, and the names that stand beside it (key, keyword, variable, option), lower case."""

    node: ast.expr
    scope: Scope
    value: float
    names: tuple[str, ...]

    @property
    def line(self) -> int:
        return int(self.node.lineno)


def numbers(project: Project) -> Sequence[Written]:
    """All numbers of the program in the order of its files and lines."""
    if "numbers" not in project.memo:
        project.memo["numbers"] = list(_numbers(project))
    found: Sequence[Written] = project.memo["numbers"]
    return found


def written_as(project: Project, value: float, words: Sequence[str]) -> Written | None:
    """The constant that gave ``value``: one with a name of ``words`` (regular expressions, the most telling first)
    beside it, else the only one of that value.

    None where it is not written, or where several are and no name tells them apart.
    """
    same = [w for w in numbers(project) if _same(w.value, value)]
    for word in words:
        named = [w for w in same if any(re.search(word, name, re.IGNORECASE) for name in w.names)]
        if named:
            return named[0]
    if len(same) == 1 and value not in COMMON:
        return same[0]
    return None


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=PRECISION, abs_tol=0.0)


def _numbers(project: Project) -> Iterator[Written]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    yield _written(project, node, scope)
        for scope in walked.scopes:
            if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _defaults(scope)


def _written(project: Project, node: ast.Constant, scope: Scope) -> Written:
    value = float(node.value) if abs(node.value) < 1e300 else math.inf  # type: ignore[arg-type]
    names: list[str] = []
    below: ast.AST = node
    for depth, above in enumerate(project.ancestors(node, scope)):
        match above:
            case ast.UnaryOp(op=ast.USub()) if depth == 0:
                value = -value
            case ast.keyword(arg=str() as name):
                names.append(name)
            case ast.Dict():
                place = next((i for i, v in enumerate(above.values) if v is below), None)
                key = above.keys[place] if place is not None else None
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    names.append(key.value)
            case ast.Call():
                names += [a.value for a in above.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                names.append(last_name(above.func) or "")
            case ast.Assign():
                names += [n for target in above.targets for n in _targets(target)]
            case ast.AnnAssign() | ast.AugAssign():
                names += _targets(above.target)
        below = above
        if isinstance(above, ast.stmt) or depth > 6:
            break
    return Written(node, scope, value, tuple(n.lower() for n in names if n))


def _targets(node: ast.expr) -> list[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return [name]
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return [name]
        case ast.Tuple() | ast.List():
            return [n for item in node.elts for n in _targets(item)]
        case _:
            return []


def _defaults(scope: Scope) -> Iterator[Written]:
    """Numbers that are defaults of parameters."""
    assert isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef)
    args = scope.node.args
    positional = [*args.posonlyargs, *args.args]
    pairs = [
        *zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        sign = 1.0
        if isinstance(default, ast.UnaryOp) and isinstance(default.op, ast.USub):
            sign, default = -1.0, default.operand
        if isinstance(default, ast.Constant) and type(default.value) in (int, float):
            number = float(default.value)  # type: ignore[arg-type]
            yield Written(default, scope, sign * number, (argument.arg.lower(),))
