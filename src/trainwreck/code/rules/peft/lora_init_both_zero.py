"""Both matrices of a low-rank adapter start at zero.

What: A and B are initialised with zeros.
Why it matters: the gradient of each is proportional to the other: both stay zero for ever.
When it is fine: where one of them is drawn at random.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.adapters import both_zero
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import modules
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
class LowRank(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.a = nn.Parameter(torch.empty(r, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.zeros_(self.a)  # expect
    def forward(self, x):
        return self.base(x) + x @ self.a.t() @ self.b.t()
"""
GOOD = """
import torch
from torch import nn
class LowRank(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.a = nn.Parameter(torch.empty(r, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.a)
    def forward(self, x):
        return self.base(x) + x @ self.a.t() @ self.b.t()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), both_zero)


def _written(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        zero = {n: place for n in owner.attributes if (place := _zero(project, owner, n)) is not None}
        if len(zero) < 2:
            continue
        for method in owner.children:
            for node in project.within(method, ast.BinOp):
                names = _product(node)
                both = [n for n in names if n in zero]
                if len(both) >= 2:
                    place = max((zero[n] for n in both), key=lambda p: getattr(p[0], "lineno", 0))
                    text = f"self.{both[0]} and self.{both[1]} both start at zero, so neither gets a gradient"
                    yield sighting(__name__, place, text)
                    return


def _zero(project: Project, owner: Scope, name: str) -> tuple[ast.AST, Scope] | None:
    """Where the parameter gets its zeros, None if it gets anything else afterwards."""
    last: tuple[int, bool, ast.AST, Scope] | None = None
    for binding in owner.attributes.get(name, ()):
        value = binding.value
        for part in binding.path:
            if isinstance(value, ast.Tuple | ast.List) and isinstance(part, int) and part < len(value.elts):
                value = value.elts[part]
        text = written(value)
        if "Parameter" in text or "Linear" in text:
            item = (binding.line, "zeros(" in text, binding.node, binding.scope)
            last = item if last is None or item[0] > last[0] else last
    if last is None:
        return None
    for method in owner.children:
        for node in project.within(method, ast.Call):
            if isinstance(node, ast.Call) and last_name(node.func).endswith("_"):
                target = (
                    written(node.args[0])
                    if node.args and "init" in written(node.func)
                    else written(getattr(node.func, "value", None))
                )
                if target.removeprefix("self.").removesuffix(".data").removesuffix(".weight") == name:
                    zeros = last_name(node.func) in ("zeros_", "zero_")
                    if node.lineno > last[0] or method.name != "__init__":
                        last = (node.lineno, zeros, node, method)
    return (last[2], last[3]) if last[1] else None


def _product(node: ast.AST) -> list[str]:
    """Attributes of self that are multiplied as matrices in ``node``, not those in sums around it."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)):
        return []
    return [n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and written(n.value) == "self"]
