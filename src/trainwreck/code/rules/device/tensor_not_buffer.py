"""A constant tensor is a plain attribute.

What: a module sets ``self.x`` to a tensor that is neither a parameter nor a buffer, uses it with its input, and is
moved to another device, or learns it from data and is read back from its ``state_dict`` as a new object.
Why it matters: the tensor stays on the CPU (the forward raises on a GPU) and is missing from the state dict.
When it is fine: where it is moved in ``forward``, or holds no dimension (numbers mix with every device).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    text_of,
)
from trainwreck.code.project import Project
from trainwreck.code.rank import rank
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.unsaved import left_unsaved
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import modules
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.scale = torch.ones(4)  # expect
    def forward(self, x):
        return self.fc(x) * self.scale
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Net().to(device)
""",
    """
import torch
class Pos(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.table = torch.zeros(100, d)  # expect
        self.mean = torch.tensor([0.1, 0.2])  # expect
    def forward(self, x):
        return (x - self.mean) + self.table[: x.size(1)]
def main():
    net = Pos(8)
    net.cuda()
""",
)
GOOD = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4))
        self.bias = nn.Parameter(torch.zeros(4))
        self.eps = torch.tensor(1e-5)
        self.shift = torch.ones(4)
        self.unused = torch.ones(4)
        self.mean = torch.zeros(3)
        self.mean = nn.Parameter(self.mean)
    def forward(self, x):
        return x * self.scale + self.bias + self.eps + self.shift.to(x.device) + self.mean
model = Net().to("cuda")
"""
MAKERS = frozenset(
    ["tensor", "zeros", "ones", "randn", "rand", "arange", "linspace", "full", "eye", "from_numpy", "tril", "triu"]
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _moved_without(project), left_unsaved)


def _moved_without(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        if not any(call.kind == "assign" and call.value is not None for b in owner.attributes.values() for call in b):
            continue
        suspects = list(_plain_tensors(project, owner))
        if not suspects or not _moved(project, owner):
            continue
        text = text_of(project, owner)
        for name, binding in suspects:
            if _moved_by_hand(text, name) or not _mixed(project, owner, name):
                continue
            said = f"self.{name} is a plain tensor: it stays on the CPU when the module moves, and is not saved"
            yield sighting(__name__, (binding.node, binding.scope), said)


def _plain_tensors(project: Project, owner: Scope) -> Iterator[tuple[str, Binding]]:
    for name, bindings in owner.attributes.items():
        if len(bindings) != 1 or bindings[0].scope.name != "__init__" or not isinstance(bindings[0].value, ast.Call):
            continue
        call = Call(bindings[0].value, bindings[0].scope)
        if call.name not in MAKERS or project.called(call) != f"torch.{call.name}" or bindings[0].path:
            continue
        if call.argument("device") is not None or call.open_ended:
            continue
        if call.name == "tensor" and rank(project, call.node, call.scope) in (0, None):
            continue
        yield name, bindings[0]


def _moved(project: Project, owner: Scope) -> bool:
    """True if an object of the class (by itself or a name for it) is moved to a device somewhere."""
    for call in project.calls("to", "cuda"):
        if call.receiver is None or (call.name == "to" and not call.node.args and not call.node.keywords):
            continue
        kind = project.class_of(call.receiver, call.scope)
        if kind is not None and (kind is owner or owner in project.bases(kind)):
            return True
    return False


def _moved_by_hand(text: str, name: str) -> bool:
    return bool(
        re.search(
            rf"self\.{name}(\[[^\]]*\])?\.(to|cuda|type_as|expand_as)\(|_apply\(|self\.{name} = self\.{name}|def to\(",
            text,
        )
    )


def _mixed(project: Project, owner: Scope, name: str) -> bool:
    """True if ``forward`` combines the tensor with something by an operator."""
    for method in owner.children:
        if method.kind != "function" or method.name == "__init__":
            continue
        for node in project.within(method, ast.BinOp):
            assert isinstance(node, ast.BinOp)
            for side in (node.left, node.right):
                base = side.value if isinstance(side, ast.Subscript) else side
                if written(base) == f"self.{name}":
                    return True
    return False
