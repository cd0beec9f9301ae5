"""Tied weights are written with ``save_file``.

What: the program ties two weights (``self.head.weight = self.embed.weight``) and writes the model's ``state_dict()``
with ``safetensors.torch.save_file``.
Why it matters: the format forbids two names for one storage: it raises when the first checkpoint is due.
When it is fine: with ``safetensors.torch.save_model``, or where one of the names is removed or cloned before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import source
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

WORDS = ("safetensors",)
BAD = (
    """
from torch import nn
from safetensors.torch import save_file
class LM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.embed = nn.Embedding(v, d)
        self.head = nn.Linear(d, v, bias=False)
        self.head.weight = self.embed.weight
def main():
    model = LM(10, 4)
    save_file(model.state_dict(), "model.safetensors")  # expect
""",
    """
import safetensors.torch
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Embedding(9, 3)
        self.out = nn.Linear(3, 9)
        self.inp.weight = self.out.weight
net = Net().cuda()
state = net.state_dict()
safetensors.torch.save_file(state, "a.safetensors")  # expect
""",
    """
import torch.nn as nn
from safetensors.torch import save_file as write
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight
def run(path):
    tied = Tied()
    write(tied.state_dict(), path)  # expect
""",
)
GOOD = """
from torch import nn
from safetensors.torch import save_file, save_model
class LM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.embed = nn.Embedding(v, d)
        self.head = nn.Linear(d, v)
        self.head.weight = self.embed.weight
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.a.weight = nn.Parameter(self.a.weight * 2)
def main():
    model, plain = LM(10, 4), Plain()
    save_model(model, "model.safetensors")
    save_file(plain.state_dict(), "plain.safetensors")
"""


def find(project: Project) -> Iterator[Evidence]:
    if re.search(r"\.clone\(\)\.contiguous\(\)|del \w+\[", source(project)):
        return
    names = {"save_file"} | {
        b.name
        for scope in project.scopes
        for found in scope.bindings.values()
        for b in found
        if b.kind == "import" and b.target == "safetensors.torch.save_file"
    }
    for call in project.calls(*sorted(names)):
        if project.called(call) != "safetensors.torch.save_file" or not call.node.args:
            continue
        model = _model(project, call.node.args[0], call.scope)
        tie = _tie(project, model) if model is not None else None
        if tie is not None:
            yield sighting(
                __name__, call, "two names of this state share one tensor, which the format forbids", proof=[tie]
            )


def _model(project: Project, node: ast.expr, scope: Scope) -> Scope | None:
    """The class whose ``state_dict()`` is saved."""
    if isinstance(node, ast.Name):
        found = [b for b in project.lookup(node.id, scope) if b.kind == "assign" and b.value is not None]
        if len(found) != 1 or found[0].value is None:
            return None
        node, scope = found[0].value, found[0].scope
    if isinstance(node, ast.Call):
        call = Call(node, scope)
        if call.name == "state_dict" and call.receiver is not None:
            return project.class_of(call.receiver, scope)
    return None


def _tie(project: Project, owner: Scope) -> tuple[str, int, str] | None:
    """``self.x.weight = self.y.weight`` in the class."""
    for part in project.bases(owner):
        for method in part.children:
            for node in project.within(method, ast.Assign):
                assert isinstance(node, ast.Assign)
                target, value = node.targets[0], node.value
                one, other = written(target), written(value)
                if isinstance(target, ast.Attribute) and _weight(one) and _weight(other) and one != other:
                    return part.module.path, node.lineno, written(node)
    return None


def _weight(name: str) -> bool:
    return name.startswith("self.") and name.endswith(".weight") and "(" not in name
