"""A tensor that the backward pass needs is overwritten in place.

What: ``x += …``, ``x[...] = …``, ``relu_``, ``clamp_`` or ``inplace=True`` on a value whose operation saved it
(exp, sigmoid, tanh, softmax, sqrt, a product).
Why it matters: autograd finds another version of the saved tensor and fails at ``backward()``, far from the line.
When it is fine: on leaves without gradient, under ``no_grad``, after operations that save nothing (addition).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.inplace import overwritten
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import modules
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"modified by an inplace operation", r"leaf Variable that requires grad .*in-place")
ERROR = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
BAD = """
import torch
from torch import nn
class Gate(nn.Module):
    def forward(self, x):
        g = torch.sigmoid(self.lin(x))
        y = x * g
        g += 1.0  # expect
        return y + g
def main(x):
    loss = Gate()(x).mean()
    loss.backward()  # fails
"""
GOOD = """
import torch
from torch import nn
class Gate(nn.Module):
    def forward(self, x):
        g = torch.sigmoid(self.lin(x))
        total = 0
        total += 1
        return x * g + total
def main(x):
    loss = Gate()(x).mean()
    loss.backward()  # fails
"""
SAVING = pattern(r"sigmoid|tanh|softmax|exp|sqrt|norm|relu|gelu|silu|matmul|@|\*|lin|conv|attn|pow|/|softplus|elu")
HARMLESS = frozenset(
    [
        "requires_grad_",
        "zero_",
        "normal_",
        "uniform_",
        "xavier_uniform_",
        "kaiming_uniform_",
        "kaiming_normal_",
        "eval_",
        "clip_grad_norm_",
        "clip_grad_value_",
        "share_memory_",
        "xavier_normal_",
        "constant_",
        "zeros_",
        "ones_",
        "trunc_normal_",
        "orthogonal_",
        "retain_grad_",
        "detach_",
    ]
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, overwritten)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    scopes = [m for c in modules(project) for m in c.children if m.kind == "function" and m.name != "__init__"]
    reached = surface.scopes
    others = [f for f in project.functions if f not in scopes and f not in reached and f.name != "__init__"]
    found: list[tuple[int, ast.AST, Scope]] = []
    for far, group in enumerate((scopes, reached, others)):
        for scope in group:
            found += [(score - 2 * (far == 2), node, scope) for score, node in _overwrites(project, scope)]
    for score, node, scope in sorted(found, key=lambda item: -item[0]):
        if score >= 1:
            yield guess(__name__, (node, scope), f"{written(node)[:60]} overwrites a tensor in place")
            return


def _overwrites(project: Project, scope: Scope) -> Iterator[tuple[int, ast.AST]]:
    for node in project.within(scope, ast.AugAssign, ast.Assign, ast.Call):
        if under_no_grad(project, node, scope):
            continue
        match node:
            case ast.AugAssign(target=ast.Name(id=name)):
                score = _tensor(scope, name)
                if score:
                    yield score, node
            case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name))):
                yield _tensor(scope, name) + 1, node
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]):
                score = _tensor(scope, name)
                if score:
                    yield score, node
            case ast.Call():
                call = Call(node, scope)
                if call.name.endswith("_") and not call.name.startswith("_") and call.name not in HARMLESS:
                    base = written(call.receiver)
                    if ".weight" not in base and ".data" not in base and "init" not in base and ".bias" not in base:
                        yield 2 + (_tensor(scope, base) > 1), node
                elif any(k.arg == "inplace" and written(k.value) == "True" for k in node.keywords):
                    yield 1, node


def _tensor(scope: Scope, name: str) -> int:
    """How sure it is that ``name`` is a saved tensor: 0 a plain value, 3 the result of an operation that saves it."""
    values = [b.value for b in scope.bindings.get(name, ()) if b.kind == "assign" and b.value is not None]
    if any(isinstance(v, ast.Constant | ast.List | ast.Dict | ast.ListComp | ast.DictComp) for v in values):
        return 0
    if not values:
        return 1 if any(b.kind == "param" for b in scope.bindings.get(name, ())) else 0
    if any(
        last_name(v) in ("len", "item", "int", "float", "zeros", "empty", "ones", "full", "dict", "list")
        for v in values
    ):
        return 0
    return 3 if any(SAVING.search(written(v)) for v in values) else 2
