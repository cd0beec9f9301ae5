"""Optimizer state is loaded before the model moves to its device.

What: ``optimizer.load_state_dict(...)`` and afterwards ``model.to(device)`` or ``.cuda()`` in the same block.
Why it matters: the state is placed where the parameters were at that moment, on the CPU; the first step raises
"expected all tensors to be on the same device".
When it is fine: where the model is moved before, or the state is moved by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import later, made, optimizers, text_of
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def resume(net, path):
    opt = torch.optim.Adam(net.parameters())
    ckpt = torch.load(path, map_location="cpu")
    net.load_state_dict(ckpt["net"])
    opt.load_state_dict(ckpt["opt"])  # expect
    net.cuda()
    return net, opt
""",
    """
import torch
device = torch.device("cuda")
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
optimizer.load_state_dict(torch.load("opt.pt"))  # expect
model = model.to(device)
""",
    """
import torch
class Run:
    def __init__(self, model, state):
        self.model = model
        self.optim = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.optim.load_state_dict(state["optim"])  # expect
        self.model.to("cuda:0")
""",
)
GOOD = """
import torch
def resume(net, path, device):
    net.to(device)
    opt = torch.optim.Adam(net.parameters())
    opt.load_state_dict(torch.load(path))
    return opt
def half(net, path):
    opt = torch.optim.Adam(net.parameters())
    opt.load_state_dict(torch.load(path))
    net.to(torch.float32)
    for state in opt.state.values():
        pass
def by_hand(net, path):
    opt = torch.optim.Adam(net.parameters())
    opt.load_state_dict(torch.load(path))
    net.cuda()
    for state in opt.state.values():
        for k, v in state.items():
            state[k] = v.cuda()
def to_cpu(net, path):
    opt = torch.optim.Adam(net.parameters())
    opt.load_state_dict(torch.load(path))
    torch.save(net.cpu(), "x")
"""
DEVICE = pattern(r"cuda|device|gpu|rank|mps", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    built = {id(c.node): c for c in optimizers(project)}
    for call in project.calls("load_state_dict"):
        if call.receiver is None:
            continue
        maker = next((built[id(c.node)] for c in made(project, call.receiver, call.scope) if id(c.node) in built), None)
        model = _model(maker) if maker is not None and maker.scope is call.scope else None
        if model is None or ".state.values()" in text_of(project, call.scope):
            continue
        for move in project.calls("to", "cuda"):
            same = move.scope is call.scope and move.receiver is not None and written(move.receiver) == model
            if same and later(move.node, call.node) and _moves(move) and not _moved_before(project, call, model):
                text = "the state lands on the device where the parameters still are; they move afterwards"
                yield sighting(__name__, call, text, proof=[move])
                break


def _model(optimizer: Call) -> str | None:
    given = optimizer.node.args[0] if optimizer.node.args else None
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters":
        return written(given.func.value)
    return None


def _moves(call: Call) -> bool:
    if call.name == "cuda":
        return True
    text = written(call.node.args[0]) if call.node.args else ""
    return bool(DEVICE.search(text)) and "dtype" not in text


def _moved_before(project: Project, call: Call, model: str) -> bool:
    """True if the model was moved before, as a statement or where it is built."""
    for move in project.calls("to", "cuda"):
        if move.scope is not call.scope or not later(call.node, move.node) or not _moves(move):
            continue
        statement = project.statement(move.node, move.scope)
        bound = isinstance(statement, ast.Assign) and written(statement.targets[0]) == model
        if bound or (move.receiver is not None and written(move.receiver) == model):
            return True
    return False
