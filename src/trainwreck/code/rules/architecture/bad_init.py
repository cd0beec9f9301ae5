"""All weights start at one value.

What: a loop over all parameters sets each of them to a constant; or parameters that start at zero are multiplied
with each other, so that the gradient of each is zero for ever.
Why it matters: all units of a layer stay equal for ever (or at zero, where no gradient flows): the network has one
unit per layer.
When it is fine: for biases, or single layers that are meant to start at zero.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import names, optimizers, trains
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.both_zero import never_leaves
from trainwreck.code.rehearsal.questions.depth import faded
from trainwreck.code.rehearsal.questions.initial import faint, wide
from trainwreck.code.rehearsal.questions.same_weights import all_alike
from trainwreck.code.rehearsal.questions.starts import stuck
from trainwreck.code.rehearsal.questions.step_sizes import begins_elsewhere
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
def init(model):
    for p in model.parameters():
        nn.init.zeros_(p)  # expect
""",
    """
import torch
def init(model):
    for name, p in model.named_parameters():
        torch.nn.init.constant_(p, 0.1)  # expect
""",
    """
def init(net):
    for p in net.parameters():
        p.data.fill_(0.01)  # expect
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 64), nn.Linear(64, 2)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0.0, 5.0)  # expect
def train(x, net=Net()):
    net(x).sum().backward()
""",
    """
import torch
from torch import nn
def init(m):
    if isinstance(m, (nn.Linear, nn.Conv2d)):
        nn.init.zeros_(m.weight)  # expect
        nn.init.zeros_(m.bias)
def train(x):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    net.apply(init)
    net(x).sum().backward()
""",
    """
import torch
from torch import nn
class Factors(nn.Module):
    def __init__(self, users, items, k):
        super().__init__()
        self.u = nn.Parameter(torch.zeros(users, k))  # expect
        self.v = nn.Parameter(torch.zeros(items, k))
        self.mean = nn.Parameter(torch.zeros(()))
    def forward(self, i, j):
        return (self.u[i] * self.v[j]).sum(-1) + self.mean
net = Factors(50, 40, 8)
opt = torch.optim.Adam(net.parameters())
for step in range(100):
    i, j, r = torch.randint(0, 50, (32,)), torch.randint(0, 40, (32,)), torch.randn(32)
    loss = nn.functional.mse_loss(net(i, j), r)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
with torch.no_grad():
    net[0].weight.zero_()  # expect
    net[0].bias.zero_()
    net[2].weight.zero_()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    x = torch.randn(32, 4)
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)
GOOD = (
    """
from torch import nn
def init(model, grads):
    for name, p in model.named_parameters():
        if "bias" in name:
            nn.init.zeros_(p)
        else:
            nn.init.xavier_uniform_(p)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    for p in model.parameters():
        p.grad.zero_()
def _init_weights(self, module):
    if isinstance(module, LossWeighting):
        for p in module.parameters():
            nn.init.zeros_(p)
""",
    """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.bn, self.out = nn.Linear(8, 64), nn.BatchNorm1d(64), nn.Linear(64, 2)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, std=0.02)
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.BatchNorm1d):
                nn.init.ones_(m.weight)
        nn.init.zeros_(self.out.weight)
def train(x, net=Net()):
    net(x).sum().backward()
""",
    """
from torch import nn
def init(m):
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.weight.data, 1.0)
        nn.init.kaiming_normal_(m.weight.data)
def train(x):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).apply(init)
    net(x).sum().backward()
""",
    """
import torch
from torch import nn
class Factors(nn.Module):
    def __init__(self, users, items, k):
        super().__init__()
        self.u = nn.Embedding(users, k)
        self.v = nn.Embedding(items, k)
        self.gate = nn.Parameter(torch.zeros(k))
        nn.init.zeros_(self.v.weight)
    def forward(self, i, j):
        return (self.u(i) * self.v(j)).sum(-1) + (self.u(i) * self.gate).sum(-1)
net = Factors(50, 40, 8)
opt = torch.optim.Adam(net.parameters())
for step in range(100):
    i, j, r = torch.randint(0, 50, (32,)), torch.randint(0, 40, (32,)), torch.randn(32)
    loss = nn.functional.mse_loss(net(i, j), r)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
for layer in (net[2], net[4]):
    nn.init.zeros_(layer.bias)
nn.init.zeros_(net[4].weight)
skip = nn.Linear(4, 1)
nn.init.zeros_(skip.weight)
opt = torch.optim.SGD([*net.parameters(), *skip.parameters()], lr=0.1)
for step in range(100):
    x = torch.randn(32, 4)
    loss = (net(x) + skip(x) - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)
CONSTANT = frozenset(["zeros_", "ones_", "constant_", "fill_", "zero_"])


def find(project: Project) -> Iterator[Evidence]:
    found = list(further(__name__, project, _written(project), stuck, wide, faint, faded, all_alike, begins_elsewhere))
    yield from found or answers(__name__, project, never_leaves)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _loops(project)
    if trains(project):
        yield from _by_kind(project)


WIDE = 0.9
"""A standard deviation from here on saturates or explodes every layer wider than a few units; libraries use 0.02 to
1/sqrt(fan_in)."""


def _by_kind(project: Project) -> Iterator[Evidence]:
    """``init.normal_(m.weight, std=5)`` or ``init.zeros_(m.weight)`` for every layer of a kind."""
    for call in project.calls("normal_", "zeros_", "ones_", "constant_", "uniform_", "fill_", "zero_"):
        subject = call.node.args[0] if "init" in written(call.node.func) and call.node.args else call.receiver
        owner = re.match(r"(\w+)\.weight(\.data)?$", written(subject))
        if owner is None or not _every_layer(project, call, owner.group(1)) or _written_again(project, call, owner[1]):
            continue
        functional = "init" in written(call.node.func)
        if call.name in ("zeros_", "ones_", "constant_", "fill_", "zero_"):
            text = "every weight of these layers gets the same value: their units never differ"
            yield sighting(__name__, call, text)
        elif call.name == "normal_":
            given = call.argument("std", 2 if functional else 1)
            std = number(project, given, call.scope) if given is not None else 1.0
            if std is not None and std >= WIDE:
                yield sighting(__name__, call, f"weights with a standard deviation of {std:g}: activations explode")
        else:
            given = call.argument("b", 2 if functional else 1)
            high = number(project, given, call.scope) if given is not None else 1.0
            if high is not None and high > WIDE:
                yield sighting(__name__, call, f"weights up to {high:g}: activations explode")


def _written_again(project: Project, call: Call, name: str) -> bool:
    """True if a later statement of the same block writes into the same weight."""
    statement = project.statement(call.node, call.scope)
    above = project.parent(statement, call.scope)
    for block in (getattr(above, "body", []), getattr(above, "orelse", [])):
        if statement in block:
            for later in block[block.index(statement) + 1 :]:
                if re.search(rf"\w_\({name}\.weight\b|\b{name}\.weight(\.data)?(\.\w+_\(| = )", written(later)):
                    return True
    return False


def _every_layer(project: Project, call: Call, name: str) -> bool:
    """True under ``if isinstance(m, nn.Linear)`` in a function for ``apply`` or a loop over the modules."""
    asked = False
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, ast.If) and call.node in list(ast.walk(above)):
            inside = any(call.node in list(ast.walk(s)) for s in above.body)
            kind = re.search(rf"isinstance\({name}, .*(Linear|Conv\dd)", written(above.test))
            if re.search(
                r"norm|zero|last|out|head|gate|proj|final|residual|\.name|in n\b", written(above.test), re.IGNORECASE
            ):
                return False
            asked |= bool(kind) and inside
    if not asked:
        return False
    if name in call.scope.params:
        return bool(list(project.calls("apply"))) and not re.search(r"zero|out|head|last", call.scope.name)
    return any(
        isinstance(loop, ast.For) and re.search(r"\.modules\(\)", written(loop.iter))
        for loop in loops(project, call.node, call.scope)
    )


def _loops(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for loop in project.within(scope, ast.For):
                assert isinstance(loop, ast.For)
                if not re.search(r"\.(named_)?parameters\(\)$", written(loop.iter)) or len(loop.body) != 1:
                    continue
                statement = loop.body[0]
                if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
                    continue
                call = statement.value
                name = written(loop.target.elts[-1]) if isinstance(loop.target, ast.Tuple) else written(loop.target)
                base = call.func.value if isinstance(call.func, ast.Attribute) else None
                subject = call.args[0] if call.args and "init" in written(call.func) else base
                if (
                    last_name(call.func) in CONSTANT
                    and subject is not None
                    and written(subject) in (name, f"{name}.data")
                    and not _of_one_kind(project, loop, scope)
                    and not _beside_the_trained(project, loop, scope)
                    and not re.search(
                        r"grad|ema|shadow|teacher|target|accum|mask|avg|head|zero_module|zero_init",
                        written(loop.iter) + scope.name,
                        re.IGNORECASE,
                    )
                ):
                    yield sighting(
                        __name__,
                        (statement, scope),
                        "every weight gets the same value: the units of a layer never differ",
                    )


def _beside_the_trained(project: Project, loop: ast.For, scope: Scope) -> bool:
    """True for a network that is made here while the optimizers of this function hold others: a base line."""
    owner = re.match(r"(\w+)\.", written(loop.iter))
    if owner is None or owner[1] in scope.params or not project.lookup(owner[1], scope):
        return False
    here = [c for c in optimizers(project) if c.scope is scope]
    return bool(here) and not any(owner[1] in names(a) for c in here for a in c.node.args)


def _of_one_kind(project: Project, loop: ast.For, scope: Scope) -> bool:
    """True under ``isinstance(module, X)``: somebody chose it for this kind of module."""
    return any(isinstance(a, ast.If) and "isinstance(" in written(a.test) for a in project.ancestors(loop, scope))
