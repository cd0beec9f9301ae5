"""The result of moving a tensor is dropped.

What: ``x.to(device)`` or ``x.cuda()`` of a batch as a statement of its own.
Why it matters: a tensor is not moved in place: the batch stays where it was, and the forward raises on a GPU.
When it is fine: for modules, which move in place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    is_torch,
    names_in,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding
from trainwreck.core.evidence import Evidence

BAD = (
    """
def train(model, loader, device):
    model.to(device)
    for x, y in loader:
        x.to(device)  # expect
        y = y.to(device)
        model(x)
""",
    """
import torch
def run(model):
    noise = torch.randn(4, 3)
    noise.cuda()  # expect
    return model.cuda()(noise)
""",
    """
def train(model, loader, device):
    for batch in loader:
        images, labels = batch
        images.to(device, non_blocking=True)  # expect
        model(images)
""",
)
GOOD = """
import torch
def train(model, loader, device, batch):
    model.to(device)
    criterion = torch.nn.CrossEntropyLoss()
    criterion.cuda()
    batch.to(device)
    for x, y in loader:
        x = x.to(device)
        y = y.cuda()
    for layer in model.layers:
        layer.to(device)
    for enc in loader:
        enc.to(device)
"""
TENSORS = frozenset(
    ["tensor", "randn", "rand", "zeros", "ones", "from_numpy", "arange", "randint", "full", "as_tensor", "stack", "cat"]
)
LOADER = pattern(r"loader|(^|_)dl$|dataloader", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("to", "cuda", "half", "bfloat16"):
        parent = project.parent(call.node, call.scope)
        if not isinstance(parent, ast.Expr) or not isinstance(call.receiver, ast.Name):
            continue
        bindings = project.lookup(call.receiver.id, call.scope)
        if bindings and all(_tensor(project, b) for b in bindings):
            yield sighting(
                __name__, call, f"{call.receiver.id} is a tensor: {call.name}() gives a new one, which is dropped here"
            )


def _tensor(project: Project, binding: Binding) -> bool:
    """True if the binding is one of several parts of a batch, or a tensor that torch made."""
    value = binding.value
    if value is None:
        return False
    if binding.kind == "loop":
        return len(binding.path) > 1 and names_in(value, LOADER) and not _enumerated(binding)
    if binding.kind != "assign":
        return False
    if isinstance(value, ast.Name) and len(binding.path) == 1:
        inner = project.lookup(value.id, binding.scope)
        return bool(inner) and all(
            b.kind == "loop" and b.value is not None and names_in(b.value, LOADER) for b in inner
        )
    if isinstance(value, ast.Call) and not binding.path:
        call = Call(value, binding.scope)
        if call.name in ("to", "cuda") and written(call.receiver) == binding.name:
            return True
        return call.name in TENSORS and is_torch(project, call)
    return False


def _enumerated(binding: Binding) -> bool:
    """True for the counter or the whole batch of ``enumerate(loader)``."""
    value = binding.value
    return isinstance(value, ast.Call) and last_name(value.func) == "enumerate" and len(binding.path) < 3
