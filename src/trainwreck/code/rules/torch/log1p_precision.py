"""A logarithm or exponential that loses small values.

What: `torch.log(1 + x)` or `torch.exp(x) - 1`.
Why it matters: for small x the sum rounds to 1 and the result to 0; `log1p` and `expm1` keep it.
When it is fine: for large values of x only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
import torch
def work(x):
    a = torch.log(1 + x)  # expect
    return torch.log(x + 1.0), torch.exp(a) - 1  # expect
"""
GOOD = """
import torch
import math
def work(x):
    return torch.log1p(x), torch.expm1(x), math.log(1 + 2), torch.log(x + 2), torch.exp(x) + 1
"""


def find(project: Project) -> Iterator[Evidence]:
    lines: set[tuple[str, int]] = set()
    for call in sorted(project.calls("log", "exp"), key=lambda c: (c.scope.module.path, c.line)):
        found = _told(project, call)
        if found is not None and (call.scope.module.path, call.line) not in lines:
            lines.add((call.scope.module.path, call.line))
            yield found


def _told(project: Project, call: Call) -> Evidence | None:
    name, place = project.called(call), (call.node, call.scope)
    if name == "torch.log" and call.node.args and _plus_one(call.node.args[0]):
        return _say(place, "torch.log(1 + x) loses small x; torch.log1p(x) keeps it", "torch.log1p(x)")
    above = project.parent(call.node, call.scope)
    minus = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub) and above.left is call.node
    if name == "torch.exp" and minus and isinstance(above, ast.BinOp) and _one(above.right):
        return _say(place, "torch.exp(x) - 1 loses small x; torch.expm1(x) keeps it", "torch.expm1(x)")
    return None


def _say(place: tuple[ast.AST, Scope], text: str, words: str) -> Evidence:
    return sighting(__name__, place, text, fix=Fix(words))


def _plus_one(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and (_one(node.left) or _one(node.right))


def _one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 1
