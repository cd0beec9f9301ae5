"""The model stays in evaluation mode after the first evaluation.

What: ``train()`` is called once before the loop, ``eval()`` in every round of it; or an evaluation before the first
round switches the network that the optimizer updates to evaluation mode and nothing switches it back.
Why it matters: from the second epoch on dropout is off and BatchNorm uses frozen statistics.
When it is fine: where ``train()`` stands in the loop, or the evaluation function switches back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import made, made_once, optimizers
from trainwreck.code.order import loops, training_steps
from trainwreck.code.params import held
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.modes import eval_in_training, left_quiet
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
def evaluate(model, loader):
    model.eval()
    return sum(model(x).sum() for x in loader)
def main(model, loader, opt):
    model.train()  # expect
    for epoch in range(3):
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        evaluate(model, loader)
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
class Runner:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt
    def check(self, loader):
        self.net.eval()
        with torch.no_grad():
            return sum(self.net(x).sum() for x in loader)
    def run(self, loader):
        print(self.check(loader))
        for epoch in range(3):  # expect
            for x, y in loader:
                self.opt.zero_grad()
                (self.net(x) - y).pow(2).mean().backward()
                self.opt.step()
def main(loader):
    net = Net()
    Runner(net, torch.optim.SGD(net.parameters(), lr=0.1)).run(loader)
""",
    """
import torch
from torch import nn
@torch.no_grad()
def score(m, data):
    m.eval()
    return sum(m(x).sum() for x in data)
def main(loader):
    student, teacher = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)), nn.Linear(4, 2)
    teacher.eval()
    opt = torch.optim.Adam(student.parameters())
    first = score(student, loader)
    for x in loader:  # expect
        loss = (student(x) - teacher(x)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = (
    """
import torch
import torch.nn.functional as F
from torch import nn
teacher = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
student = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
teacher.eval()
opt = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(500, 8)
for epoch in range(20):
    student.train()
    for idx in torch.randperm(len(x)).split(25):
        opt.zero_grad()
        F.kl_div(student(x[idx]).log_softmax(1), teacher(x[idx]).softmax(1), reduction="batchmean").backward()
        opt.step()
    student.eval()
    with torch.no_grad():
        print((student(x).argmax(1) == teacher(x).argmax(1)).float().mean())
""",
    """
import torch
from torch import nn
class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.1))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, 2))
        for p in self.trunk.parameters():
            p.requires_grad = False
    def train(self, mode=True):
        super().train(mode)
        self.trunk.eval()
        return self
    def forward(self, x):
        return self.head(self.trunk(x))
net = Frozen()
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)
x, y = torch.randn(500, 8), torch.randint(2, (500,))
for epoch in range(20):
    net.train()
    for idx in torch.randperm(len(x)).split(25):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x[idx]), y[idx]).backward()
        opt.step()
    net.eval()
""",
    """
def evaluate(model, loader):
    model.eval()
    out = sum(model(x).sum() for x in loader)
    model.train()
    return out
def main(model, loader, opt):
    model.train()
    for epoch in range(3):
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        evaluate(model, loader)
""",
    """
import torch
from torch import nn
def score(m, data):
    was = m.training
    m.eval()
    out = sum(m(x).sum() for x in data)
    m.train(was)
    return out
def probe(m, data):
    m.eval()
    return sum(m(x).sum() for x in data)
def main(loader):
    student, teacher = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)), nn.Linear(4, 2)
    teacher.eval()
    opt = torch.optim.Adam(student.parameters())
    score(student, loader)
    probe(teacher, loader)
    for x in loader:
        loss = (student(x) - teacher(x)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
def second(loader):
    net = nn.Linear(4, 2)
    opt = torch.optim.Adam(net.parameters())
    probe(net, loader)
    net.train()
    for x in loader:
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), eval_in_training, left_quiet)


def _seen(project: Project) -> Iterator[Evidence]:
    for training in training_steps(project):
        scope = training.scope
        around = loops(project, training.backward[0].node, scope)
        if not around:
            continue
        outer = around[-1]
        if _switches(project, outer, scope, "train", 0):
            continue
        if not _switches(project, outer, scope, "eval", 0):
            # gradients with no step after them (importances, saliencies) are taken in that mode
            at = _left_in_eval(project, outer, scope, _stepped(project, training.steps)) if training.steps else None
            if at is not None and not _frozen_whole(project, at):
                text = "the network is in evaluation mode when this loop begins, and nothing switches it back"
                yield sighting(__name__, (outer, scope), text, proof=[at])
            continue
        if _of_others(project, outer, scope) or _of_copies(project, outer, scope, training.steps):
            continue
        before = [
            c
            for c in project.calls("train")
            if c.scope is scope and c.line < outer.lineno and c.receiver is not None and not c.node.args
        ]
        if before:
            inner = _switch(project, around[0], scope, "eval") if len(around) > 1 else None
            text = "training mode is set once before the loop, evaluation mode inside it"
            yield sighting(__name__, inner or before[-1], text, proof=before[-1:] if inner else [])
        elif scope.kind == "function" and scope.owner is None and not any(True for _ in project.calls("train")):
            yield sighting(__name__, (outer, scope), "evaluation mode is set inside this loop and training mode never")


def _frozen_whole(project: Project, switched: Call) -> bool:
    """True if the network that is put into evaluation mode is frozen as a whole: its norms and dropout stay off."""
    name = written(switched.receiver).split(".")[0] if switched.receiver is not None else ""
    return any(
        call.receiver is not None
        and call.scope is switched.scope
        and written(call.receiver).split(".")[0] == name
        and [written(a) for a in (*call.node.args, *(k.value for k in call.node.keywords))] == ["False"]
        and written(call.receiver) in (name, f"{name}.eval()")
        for call in project.calls("requires_grad_")
    )


def _of_others(project: Project, outer: ast.AST, scope: Scope) -> bool:
    """True if what the loop puts into evaluation mode is built in the loop: each turn begins with another one."""
    inside = [c for c in project.calls("eval") if c.receiver is not None and c.node in set(ast.walk(outer))]
    nodes = {id(n) for n in ast.walk(outer)}
    built = [{id(c.node) for c in made(project, c.receiver, scope)} for c in inside if c.receiver is not None]
    return bool(built) and all(b & nodes for b in built)


COPIES = frozenset(["AveragedModel", "deepcopy", "ModelEmaV2", "ModelEmaV3", "EMA", "ExponentialMovingAverage"])


def _of_copies(project: Project, outer: ast.AST, scope: Scope, steps: list[Call]) -> bool:
    """True if the loop puts only copies of what is trained into evaluation mode: averages of its weights."""
    trained = _trained(project, _stepped(project, steps))
    nodes = set(ast.walk(outer))
    inside = [c for c in project.calls("eval") if c.receiver is not None and c.node in nodes]
    called = [c for n in nodes if isinstance(n, ast.Call) and (c := project.resolve(n.func, scope)) is not None]
    if any(".eval(" in written(c.node) for c in called if c.kind == "function"):
        return False
    for call in inside:
        calls = made(project, call.receiver, scope) if call.receiver is not None else []
        if not calls or any(c.name not in COPIES or id(c.node) in trained for c in calls):
            return False
    return bool(inside)


def _stepped(project: Project, steps: list[Call]) -> list[Call]:
    """The calls that build the optimizers of these steps; all optimizers of the program where that can't be seen."""
    built = {id(c.node): c for c in optimizers(project)}
    makers = [(made(project, c.receiver, c.scope), c) for c in steps if c.receiver is not None]
    found = [built[id(c.node)] for calls, step in makers for c in _latest(calls, step) if id(c.node) in built]
    return found or list(built.values())


def _latest(calls: list[Call], step: Call) -> list[Call]:
    """Of what one name was bound to one after the other in the function of the step, the last before it."""
    before = [c for c in calls if c.scope is step.scope and c.line < step.line]
    return [max(before, key=lambda c: c.line)] if len(before) == len(calls) and before else calls


def _left_in_eval(project: Project, outer: ast.AST, scope: Scope, stepped: list[Call]) -> Call | None:
    """The last call before the loop that changes the mode of the network under its optimizer, if it is ``eval``.

    Silent where a method of the program calls ``train()``: a callback in the loop may reach it.
    """
    trained = _trained(project, stepped)
    block = project.parent(outer, scope)
    last: Call | None = None
    for call in sorted(project.calls_by_scope.get(scope, ()), key=lambda c: (c.line, c.node.col_offset)):
        if call.line >= getattr(outer, "lineno", 0):
            break
        if any(isinstance(a, ast.If | ast.Try) and a is not block for a in project.ancestors(call.node, scope)):
            continue
        modes = _modes(project, call, 0)
        if modes is None:
            return None
        for name, receiver, place in modes:
            same = made_once(project, receiver, place)
            if same and same & trained:
                last = call if name == "eval" else None
    if last is None or _hooks(project) or not _used(project, last, outer, scope):
        return None
    return last


def _used(project: Project, switched: Call, loop: ast.AST, scope: Scope) -> bool:
    """False where the loop names neither the network nor a function of the program: it trains a head on features."""
    names = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name)}
    own = {n.id for n in ast.walk(switched.receiver or switched.node) if isinstance(n, ast.Name)}
    calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call)]
    return bool(own & names) or any(project.resolve(c.func, scope) is not None for c in calls)


def _hooks(project: Project) -> bool:
    """True if a callback or method, which the loop may reach unseen, switches a network to training mode."""
    return any(c.scope.owner is not None and c.receiver is not None for c in project.calls("train"))


def _trained(project: Project, built: list[Call]) -> set[int]:
    """The constructor calls of the networks whose parameters these optimizers have."""
    found: set[int] = set()
    for optimizer in built:
        for item in held(project, optimizer)[0]:
            found |= made_once(project, item.node, item.scope)
    return found


def _modes(project: Project, call: Call, depth: int) -> list[tuple[str, ast.expr, Scope]] | None:
    """(``train`` or ``eval``, the receiver, its scope) in the order of the lines; None where it restores a mode."""
    if call.name in ("train", "eval") and call.receiver is not None:
        target = project.resolve(call.node.func, call.scope)
        if target is None:
            if call.node.args and not (isinstance(call.node.args[0], ast.Constant)):
                return None
            off = bool(call.node.args) and getattr(call.node.args[0], "value", True) is False
            return [("eval" if off else call.name, call.receiver, call.scope)]
    target = project.resolve(call.node.func, call.scope) if depth < 3 else None
    if target is None or target.kind != "function" or target.name in ("forward", "__init__"):
        return []
    found: list[tuple[str, ast.expr, Scope]] = []
    for inner in sorted(project.calls_by_scope.get(target, ()), key=lambda c: (c.line, c.node.col_offset)):
        below = _modes(project, inner, depth + 1)
        if below is None:
            return None
        for name, receiver, place in below:
            found.append(
                (name, _argument_for(target, call, receiver, place), call.scope)
                if _is_param(target, receiver) and place is target
                else (name, receiver, place)
            )
    return found


def _is_param(function: Scope, node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in function.positional and node.id not in ("self", "cls")


def _argument_for(function: Scope, call: Call, node: ast.expr, place: Scope) -> ast.expr:
    """What ``call`` hands to the parameter ``node`` of ``function``."""
    assert isinstance(node, ast.Name)
    names = [n for n in function.positional if n not in ("self", "cls")]
    return call.argument(node.id, names.index(node.id)) or node


def _switch(project: Project, body: ast.AST, scope: Scope, name: str) -> Call | None:
    """The call in ``body`` that switches the mode, itself or in a function of the project."""
    calls = [Call(n, scope) for n in ast.walk(body) if isinstance(n, ast.Call)]
    return next((c for c in calls if not isinstance(c.node.func, ast.Call) and _switches_mode(project, c, name)), None)


def _switches_mode(project: Project, call: Call, name: str) -> bool:
    if call.name == name and call.receiver is not None:
        return True
    target = project.resolve(call.node.func, call.scope)
    return target is not None and target.kind == "function" and target.name not in ("forward", "__init__") and (
        _switches(project, target.node, target, name, 1)
    )  # fmt: skip


def _switches(project: Project, body: ast.AST, scope: Scope, name: str, depth: int) -> bool:
    """True if ``.train()`` or ``.eval()`` is called in ``body`` or in functions of the project that it calls."""
    for node in ast.walk(body):
        if not isinstance(node, ast.Call):
            continue
        call = Call(node, scope)
        if call.name == name and call.receiver is not None:
            return True
        target = project.resolve(node.func, scope) if depth < 3 else None
        if target is None or target.kind != "function" or target.name in ("forward", "__init__"):
            continue
        if f".{name}(" in written(target.node) or _switches(project, target.node, target, name, depth + 1):
            return True
    return False
