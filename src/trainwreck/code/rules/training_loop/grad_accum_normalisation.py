"""The loss of a micro-batch is not divided by their number.

What: the optimizer steps every N-th batch, and the loss that runs backward is a mean that is never divided by N.
Why it matters: the gradient is N times as large as that of the batch it stands for: so is the learning rate.
When it is fine: with a summed loss that is divided elsewhere, or gradients scaled before the step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    engine_in,
    made,
)
from trainwreck.code.order import (
    TrainingStep,
    kind_of,
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.scaling import undivided
from trainwreck.code.rule import sighting
from trainwreck.code.seek import losses
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion, optimizer):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()  # expect
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    """
import torch.nn.functional as F
ACCUM = 8
class Trainer:
    def fit(self):
        for step, batch in enumerate(self.loader):
            F.mse_loss(self.model(batch["x"]), batch["y"]).backward()  # expect
            if step % ACCUM == ACCUM - 1:
                self.optimizer.step()
                self.optimizer.zero_grad()
""",
    """
import torch
import torch.nn.functional as F
def train(net, stream, updates, micro):
    opt = torch.optim.AdamW(net.parameters())
    for it in range(updates):
        opt.zero_grad()
        for _ in range(micro):
            x, y = next(stream)
            F.cross_entropy(net(x), y).backward()  # expect
        opt.step()
""",
    """
import torch
from torch import nn
class Updater:
    def __init__(self, opt, every):
        self.opt, self.every, self.seen = opt, every, 0
    def __call__(self, loss):
        loss.backward()  # expect
        self.seen += 1
        if self.seen >= self.every:
            self.opt.step()
            self.opt.zero_grad()
            self.seen = 0
net = nn.Linear(8, 3)
update = Updater(torch.optim.SGD(net.parameters(), lr=0.1), 8)
x, y = torch.randn(640, 8), torch.randint(3, (640,))
for epoch in range(9):
    for idx in torch.randperm(640).split(10):
        update(nn.functional.cross_entropy(net(x[idx]), y[idx]))
""",
    """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(640, 8), torch.randn(640)
left = 16
opt.zero_grad()
for i in torch.randint(640, (6400,)).tolist():
    error = (net(x[i]).squeeze() - y[i]).square()
    error.backward()  # expect
    left -= 1
    if left == 0:
        opt.step()
        opt.zero_grad()
        left = 16
""",
    """
import torch
from torch import nn
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(640, 8), torch.randint(3, (640,))
for big in torch.randperm(640).split(64):
    opt.zero_grad()
    for idx in big.view(4, 16):
        nn.functional.cross_entropy(net(x[idx]), y[idx]).backward()  # expect
    opt.step()
""",
)
GOOD = (
    """
import torch
from torch import nn
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(640, 8), torch.randint(3, (640,))
for big in torch.randperm(640).split(64):
    opt.zero_grad()
    for idx in big.view(4, 16):
        (nn.functional.cross_entropy(net(x[idx]), y[idx]) / 4).backward()
    opt.step()
""",
    """
import torch
from torch import nn
class Updater:
    def __init__(self, opt, every):
        self.opt, self.every, self.seen = opt, every, 0
    def __call__(self, loss):
        (loss / self.every).backward()
        self.seen += 1
        if self.seen >= self.every:
            self.opt.step()
            self.opt.zero_grad()
            self.seen = 0
net = nn.Linear(8, 3)
update = Updater(torch.optim.SGD(net.parameters(), lr=0.1), 8)
x, y = torch.randn(640, 8), torch.randint(3, (640,))
for epoch in range(9):
    for idx in torch.randperm(640).split(10):
        update(nn.functional.cross_entropy(net(x[idx]), y[idx]))
""",
    """
import torch
from torch import nn
net = nn.Linear(8, 1)
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(640, 8), torch.randn(640)
seen = quiet = 0
for i in torch.randint(640, (6400,)).tolist():
    (net(x[i]).squeeze() - y[i]).square().backward()
    seen += 1
    if seen == 16:
        for p in net.parameters():
            p.grad /= seen
        opt.step()
        opt.zero_grad()
        seen = 0
other = nn.Linear(8, 1)
plain = torch.optim.SGD(other.parameters(), lr=0.01)
for i in torch.randint(640, (6400,)).tolist():
    plain.zero_grad()
    (other(x[i]).squeeze() - y[i]).square().backward()
    plain.step()
    quiet += 1
    if quiet == 100:
        print("a hundred updates")
        quiet = 0
""",
    """
import torch
def train(model, loader, criterion, optimizer, accum):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    """
import torch
def train(model, loader, criterion, optimizer, accum):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss = loss * (1 / accum)
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    """
import torch
def train(model, loader, criterion, optimizer):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        if i % 2 == 0:
            clip(model)
        optimizer.step()
""",
    """
import torch
import torch.nn.functional as F
def train(net, stream, updates, heads, micro):
    opt = torch.optim.AdamW(net.parameters())
    for it in range(updates):
        opt.zero_grad()
        for k in range(heads):
            x, y = next(stream)
            F.cross_entropy(net(x, k), y).backward()
        for _ in range(micro):
            x, y = next(stream)
            (F.cross_entropy(net(x), y) / micro).backward()
        opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), undivided)


def _seen(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        if (step.loop is None and step.micro is None) or len(step.backward) != 1 or engine_in(project, step.scope):
            continue
        if step.micro is not None:
            yield from _micro(project, step)
            continue
        guards = [
            g for s in step.steps if kind_of(project, s) == "optimizer" and (g := modulo(project, s, step)) is not None
        ]
        zeros = [modulo(project, z, step) for z in step.zeros]
        call = step.backward[0]
        if not guards or len(guards) != len(step.steps) or None in zeros or call.receiver is None:
            continue
        if modulo(project, call, step) is not None or not _plain(project, call, step):
            continue
        text = "the loss is a mean that is not divided by the number of accumulated batches"
        yield sighting(__name__, call, text, proof=step.steps[:1])


def _micro(project: Project, step: TrainingStep) -> Iterator[Evidence]:
    """``for _ in range(accum)``: the same loss of further batches; a loop that uses its number may sum other terms."""
    loop, call = step.micro, step.backward[0]
    if not isinstance(loop, ast.For) or last_name(loop.iter) != "range" or call.receiver is None:
        return
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    used = {n.id for child in loop.body for n in ast.walk(child) if isinstance(n, ast.Name)}
    if names & used or not _plain(project, call, step) or _adapts(project, loop, call):
        return
    text = "the loss is a mean that is not divided by the number of accumulated batches"
    yield sighting(__name__, call, text, proof=step.steps[:1])


def _adapts(project: Project, loop: ast.For, call: Call) -> bool:
    """True where each turn is a task of its own, for which the weights are adapted first: gradients of tasks are summed
    or averaged as one likes."""
    inside = [n for child in loop.body for n in ast.walk(child) if isinstance(n, ast.Call)]
    own = [project.resolve(n.func, call.scope) for n in inside]
    inside += [n for scope in own if scope is not None for n in ast.walk(scope.node) if isinstance(n, ast.Call)]
    return any(last_name(n.func) in ("functional_call", "deepcopy", "grad", "clone_module", "adapt") for n in inside)


def modulo(project: Project, call: Call, step: TrainingStep) -> ast.If | None:
    """The ``if`` between the loop and ``call`` that lets only every N-th pass through."""
    for above in project.ancestors(call.node, call.scope):
        if above is step.body:
            return None
        if isinstance(above, ast.If) and any(isinstance(n, ast.Mod) for n in ast.walk(above.test)):
            return above
    return None


def _plain(project: Project, call: Call, step: TrainingStep) -> bool:
    """True if the value is the bare result of a loss call, and nothing in the loop divides it or the gradients."""
    receiver = call.receiver
    assert receiver is not None
    found = ends(project, receiver, call.scope, reshapes=False)
    for node, scope in found:
        if not isinstance(node, ast.Call) or last_name(node.func) in ("scale", "sum"):
            return False
        inner = Call(node, scope)
        if not any(inner.node is loss.node for loss in losses(project)):
            return False
        makers = [inner, *made(project, node.func, scope)]
        if any(m.argument("reduction") is not None for m in makers):
            return False
    text = written(step.body)
    return bool(found) and not any(
        w in text for w in (".grad.div", ".grad /=", ".grad.mul", ".grad *=", "div_(", "mul_(")
    )
