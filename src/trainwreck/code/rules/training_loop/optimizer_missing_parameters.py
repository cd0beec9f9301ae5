"""A part of the model is replaced after the optimizer was built.

What: ``model.head = nn.Linear(...)`` (or an added module) stands below the construction of the optimizer.
Why it matters: the optimizer holds the old parameters; the new ones never change.
When it is fine: where the optimizer is built again, or ``add_param_group`` adds them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import OPTIMIZERS
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
def main(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.fc = nn.Linear(64, 10)  # expect
    for x, y in data():
        model(x).sum().backward()
        optimizer.step()
"""
GOOD = """
import torch
from torch import nn
def main(model):
    model.fc = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.note = str(3)
def again(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.fc = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
"""


def find(project: Project) -> Iterator[Evidence]:
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        built = [c for name in OPTIMIZERS for c in project.calls(name) if c.scope is scope]
        if not built or any(c.scope is scope for c in project.calls("add_param_group")):
            continue
        for name, bindings in scope.bindings.items():
            base, _, attribute = name.partition(".")
            if not attribute:
                continue
            for binding in bindings:
                before = [c for c in built if c.line < binding.line and _covers(project, c, base)]
                after = [c for c in built if c.line > binding.line and _covers(project, c, base)]
                if before and not after and binding.kind == "assign" and _layer(project, binding.value, scope):
                    text = f"{base}.{attribute} is replaced here, after the optimizer took its parameters"
                    yield sighting(__name__, (binding.node, scope), text, proof=before[-1:])


def _covers(project: Project, call: Call, base: str) -> bool:
    """True if the optimizer is built from the parameters of ``base`` (directly, or through a name)."""
    texts = [written(a) for a in (*call.node.args[:1], *(k.value for k in call.node.keywords if k.arg == "params"))]
    for argument in call.node.args[:1]:
        if isinstance(argument, ast.Name):
            texts += [written(b.value) for b in project.lookup(argument.id, call.scope) if b.value is not None]
    return any(f"{base}.parameters" in t or f"{base}.named_parameters" in t for t in texts)


def _layer(project: Project, value: ast.expr | None, scope: Scope) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = project.dotted(value.func, scope)
    if name.startswith("torch.nn.") and last_name(value.func)[:1].isupper() and "Loss" not in name:
        return True
    owner = project.class_of(value, scope)
    return owner is not None and project.is_a(owner, "Module")
