"""A part of a model under DDP takes no part in the forward pass.

What: a layer or parameter is made in ``__init__`` of a class that is wrapped in DistributedDataParallel, and nothing
reads it; or ``forward`` skips layers at random (``if random() < p: continue``); ``find_unused_parameters`` is off.
Why it matters: DDP waits for the gradient of every parameter: the second iteration raises.
When it is fine: with ``find_unused_parameters=True``, or where the part is frozen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.aliases import calls_to
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import made, only, option, source, text_of
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.replicated import now_and_then
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.core.evidence import Evidence

WORDS = ("DistributedDataParallel",)
BAD = (
    """
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.aux = nn.Linear(8, 2)  # expect
    def forward(self, x):
        return self.body(x)
model = DDP(Net().cuda(), device_ids=[0])
""",
    """
import torch
from torch import nn
class Encoder(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, d))  # expect
        self.net = nn.Sequential(nn.Linear(d, d), nn.ReLU())
    def forward(self, x):
        return self.net(x)
def main(rank):
    net = Encoder(16).to(rank)
    net = nn.parallel.DistributedDataParallel(net, find_unused_parameters=False)
""",
    """
import random, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
class Deep(nn.Module):
    def __init__(self, n, p):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(n)])
        self.p = p
    def forward(self, x):
        for block in self.blocks:
            if self.training and random.random() < self.p:  # expect
                continue
            x = x + block(x)
        return x
model = DistributedDataParallel(Deep(4, 0.1))
""",
)
GOOD = (
    """
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.aux = nn.Linear(8, 2)
        self.drop = nn.Dropout(0.1)
    def forward(self, x):
        return self.aux(self.body(x))
class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.spare = nn.Linear(8, 2)
        for p in self.spare.parameters():
            p.requires_grad = False
    def forward(self, x):
        return self.net(x)
class Named(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.kind = kind
    def forward(self, x):
        return getattr(self, self.kind)(x)
class Spare(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.unused = nn.Linear(8, 2)
    def forward(self, x):
        return self.net(x)
a, b, c = DDP(Net()), DDP(Frozen()), DDP(Named("first"))
d = DDP(Spare(), find_unused_parameters=True)
e = Spare()
""",
)
LAYERS = pattern(
    r"^(Linear|Bilinear|Conv\w*|Embedding\w*|LSTM|GRU|RNN|LayerNorm|RMSNorm|GroupNorm|BatchNorm\w+|Parameter|PReLU"
    r"|MultiheadAttention|Transformer\w*)$"
)
"""Things of ``torch.nn`` that always hold parameters."""
INDIRECT = pattern(
    r"getattr|_modules|named_children|children\(|\.modules\(|__dict__|vars\(|named_parameters|parameters\("
)
SKIP = pattern(r"^(random|torch|np|numpy)\.(random\.)?(random|rand|uniform)\(")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), now_and_then)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for call in calls_to(project, "torch", "DistributedDataParallel"):
        if not _plain(project, call) or not call.node.args:
            continue
        owner = project.class_of(call.node.args[0], call.scope)
        if owner is None or id(owner) in told or project.find_method(owner, "forward") is None:
            continue
        told.add(id(owner))
        for binding in _unused(project, owner):
            text = f"self.{binding.name} gets no gradient: nothing uses it, and DDP waits for it"
            yield sighting(__name__, (binding.node, binding.scope), text, proof=[call])
        yield from _skipped(project, owner, call)


def _plain(project: Project, call: Call) -> bool:
    if any(k.arg is None for k in call.node.keywords):
        return False
    options = ("find_unused_parameters", "static_graph")
    return all(only(project, option(project, call, name)) in (None, False) for name in options)


def _unused(project: Project, owner: Scope) -> Iterator[Binding]:
    if any(INDIRECT.search(text_of(project, c).replace("self.parameters()", "")) for c in project.bases(owner)):
        return
    for name, bindings in owner.attributes.items():
        if len(bindings) != 1 or bindings[0].scope.name != "__init__" or bindings[0].value is None or bindings[0].path:
            continue
        value = bindings[0].value
        if not isinstance(value, ast.Call) or not _has_parameters(project, Call(value, bindings[0].scope)):
            continue
        if len(re.findall(rf"\b{re.escape(name)}\b", source(project))) == 1:
            yield bindings[0]


def _has_parameters(project: Project, call: Call) -> bool:
    if not project.called(call).startswith("torch.nn."):
        return False
    if call.name == "Parameter":
        return only(project, option(project, call, "requires_grad", 1)) in (None, True)
    inner = (
        [Call(a, call.scope) for a in call.node.args if isinstance(a, ast.Call)] if call.name == "Sequential" else []
    )
    return bool(LAYERS.search(call.name)) or any(_has_parameters(project, c) for c in inner)


def _skipped(project: Project, owner: Scope, wrap: Call) -> Iterator[Evidence]:
    """Layers of a list that ``forward`` passes over by chance."""
    forward = project.find_method(owner, "forward")
    for loop in project.within(forward, ast.For) if forward is not None else ():
        assert isinstance(loop, ast.For)
        if not isinstance(loop.target, ast.Name) or not any(
            m.name == "ModuleList" for m in _behind(project, loop, forward)
        ):
            continue
        for node in loop.body:
            if not isinstance(node, ast.If) or not any(isinstance(s, ast.Continue | ast.Break) for s in node.body):
                continue
            drawn = [n for n in ast.walk(node.test) if isinstance(n, ast.Call) and SKIP.search(written(n))]
            if drawn and forward is not None and last_name(drawn[0].func):
                text = "a layer that is passed over here has no gradient in that step, and DDP waits for it"
                yield sighting(__name__, (node, forward), text, proof=[wrap])
                return


def _behind(project: Project, loop: ast.For, scope: Scope | None) -> list[Call]:
    return made(project, loop.iter, scope) if scope is not None else []
