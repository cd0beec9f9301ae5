"""Gradients are switched off where the training forward pass runs.

What: ``set_grad_enabled(False)`` (or ``inference_mode``) is left on after an evaluation, or the forward pass stands
under ``no_grad`` itself.
Why it matters: the loss has no graph; ``backward()`` fails, or a frozen part silently never learns.
When it is fine: in evaluation, for teachers and targets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import optimizers
from trainwreck.code.flow import back
from trainwreck.code.order import turns_off, under_no_grad
from trainwreck.code.params import KEEPERS, builds, held, learners, parts, speaks_of_freezing
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.cuts import left_off, switched_off
from trainwreck.code.rehearsal.questions.summands import under_no_grad as summand_under_no_grad
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import is_module, modules
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"does not require grad and does not have a grad_fn", r"Inference tensors cannot be saved for backward")
ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
BAD = (
    """
import torch
def evaluate(model, loader):
    torch.set_grad_enabled(False)  # expect
    return sum(model(x).sum() for x in loader)
def train(model, loader):
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()  # fails
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    @torch.no_grad()  # expect
    def forward(self, x):
        return self.lin(x)
def train(loader):
    model = Net()
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
""",
    """
import torch
from torch import nn
class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 8)
        self.head = nn.Linear(8, 1)
    def forward(self, x):
        with torch.set_grad_enabled(not self.training):  # expect
            out, _ = self.rnn(x)
        return self.head(out[:, -1])
def main(loader, mse):
    model = Forecaster()
    opt = torch.optim.Adam(model.parameters())
    for x, y in loader:
        mse(model(x), y).backward()
        opt.step()
""",
    """
import itertools
import torch
from torch import nn
def main(loader, ce):
    encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    head = nn.Linear(8, 3)
    opt = torch.optim.SGD(itertools.chain(encoder.parameters(), head.parameters()), lr=0.1)
    for x, y in loader:
        with torch.no_grad():  # expect
            features = encoder(x)
        loss = ce(head(features), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.top = nn.Conv1d(1, 8, 3), nn.Linear(8, 2)
    @torch.inference_mode()  # expect
    def features(self, x):
        return self.stem(x).mean(-1)
    def forward(self, x):
        return self.top(self.features(x).clone())
class Trainer:
    def __init__(self):
        self.net = Net()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), 1e-3)
    def step(self, x, y, ce):
        ce(self.net(x), y).backward()
        self.optimizer.step()
""",
)
GOOD = (
    """
import torch
def evaluate(model, loader):
    with torch.no_grad():
        return sum(model(x).sum() for x in loader)
def sweep(model, loader):
    torch.set_grad_enabled(False)
    evaluate(model, loader)
    torch.set_grad_enabled(True)
def train(model, loader):
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()  # fails
""",
    """
import torch
class Probe(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.teacher, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
    def forward(self, x):
        with torch.no_grad():
            t = self.teacher(x)
        return self.head(self.enc(x)), t
    @torch.no_grad()
    def embed(self, x):
        return self.enc(x)
def probing(loader, ce):
    net, policy, gen, disc = Probe(), torch.nn.Linear(4, 2), torch.nn.Linear(4, 2), torch.nn.Linear(2, 1)
    opt = torch.optim.Adam([*net.parameters(), *policy.parameters(), *gen.parameters()])
    for x, y in loader:
        with torch.no_grad():
            action = policy(x).argmax(-1)
            fake = gen(x)
        ce(net(x)[0], y).backward()
        (policy(x)[action] + disc(gen(x)) + disc(fake)).sum().backward()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        first = [*answers(__name__, project, switched_off), *answers(__name__, project, left_off)]
        yield from further(__name__, project, first, summand_under_no_grad)


def _written(project: Project) -> Iterator[Evidence]:
    """The loss that goes backward is computed under ``no_grad`` itself, or by a ``forward`` that is; or a part that an
    optimizer is to train only ever runs without gradients."""
    told = False
    for item in _whole_forward(project):
        told = True
        yield item
    if not told and not speaks_of_freezing(project):
        yield from _parts(project)
        yield from _networks(project)


def _whole_forward(project: Project) -> Iterator[Evidence]:
    for call in project.calls("backward"):
        if call.receiver is None:
            continue
        for step in back(project, call.receiver, call.scope):
            node = step.node
            if not isinstance(node, ast.Call) or not is_module(project, node.func, step.scope):
                continue
            owner = project.class_of(node.func, step.scope)
            forward = project.find_method(owner, "forward") if owner is not None else None
            decorator = next((d for d in forward.decorators if turns_off(d)), None) if forward is not None else None
            if decorator is not None and forward is not None and not step.path[1:] and not _fixed(project, owner):
                yield sighting(__name__, (decorator, forward), "the whole forward pass runs without gradients")
                return


def _fixed(project: Project, owner: Scope | None) -> bool:
    """True for a module of buffers alone: it has nothing that could learn (a reservoir, a filter bank)."""
    if owner is None or parts(project, owner):
        return False
    called = {
        last_name(n.func)
        for method in owner.children
        for n in project.within(method, ast.Call)
        if isinstance(n, ast.Call)
    }
    return "register_buffer" in called and not called & {"Parameter", "register_parameter", "add_module"}


def _parts(project: Project) -> Iterator[Evidence]:
    """Layers of a module that learns, each call of which runs without gradients."""
    for owner in learners(project):
        if not project.is_a(owner, "Module"):
            continue
        for name in parts(project, owner):
            uses = [
                Call(node, method)
                for method in owner.children
                if method.kind == "function"
                for node in project.within(method, ast.Call)
                if isinstance(node, ast.Call) and written(node.func) in (f"self.{name}", f"self.{name}.forward")
            ]
            around = [_switched_off(project, c) for c in uses]
            first = _in_the_step(project, uses)
            off = around[first] if uses and not _called_elsewhere(project, f"self.{name}") else None
            if uses and all(a is not None for a in around) and not KEEPERS.search(name) and off is not None:
                text = f"self.{name} is among the trained parameters and only runs without gradients"
                yield sighting(__name__, (off, uses[first].scope), text)
                break


def _called_elsewhere(project: Project, name: str) -> bool:
    """True where an attribute of the object is called from outside: ``player.net(x)`` beside ``self.net(x)``."""
    own, _, attribute = name.partition(".")
    return own == "self" and any(
        isinstance(node.func, ast.Attribute) and node.func.attr == attribute and written(node.func.value) != "self"
        for walked in project.walked.values()
        for node, _ in walked.calls
    )


def _in_the_step(project: Project, uses: list[Call]) -> int:
    """Which of the calls stands in a function that runs backward; else the first."""
    stepping = {c.scope for c in project.calls("backward")}
    return next((n for n, c in enumerate(uses) if c.scope in stepping), 0)


def _networks(project: Project) -> Iterator[Evidence]:
    """Networks in variables that an optimizer holds, each call of which stands under ``no_grad``."""
    for built in optimizers(project):
        for item in held(project, built)[0]:
            name = written(item.node)
            if not item.whole or KEEPERS.search(name.lower()) or not builds(project, item.node, item.scope):
                continue
            uses = [
                Call(node, scope)
                for walked in project.walked.values()
                for node, scope in walked.calls
                if written(node.func).removesuffix(".forward") == name
            ]
            handed = any(
                written(a) == name
                for walked in project.walked.values()
                for node, _ in walked.calls
                for a in (*node.args, *(k.value for k in node.keywords))
            )
            looped = any(
                isinstance(n, ast.For) and any(written(e) == name for e in ast.walk(n.iter) if isinstance(e, ast.Name))
                for walked in project.walked.values()
                for n in ast.walk(walked.top.node)
            )
            if looped or _called_elsewhere(project, name):
                continue  # it runs under another name too
            around = [_switched_off(project, c) for c in uses]
            if any(name in c.scope.params and c.scope is not item.scope for c in uses) or name in item.scope.params:
                continue  # the same name in two functions need not be the same network
            trained = [c for c in uses if not EVALUATES.search(c.scope.name)]
            if trained and not handed and all(a is not None for a in around):
                shown = trained[_in_the_step(project, trained)]
                first = next(a for c, a in zip(uses, around, strict=True) if c is shown)
                if first is not None:
                    text = f"{name} is among the trained parameters and only runs without gradients"
                    yield sighting(__name__, (first, shown.scope), text, proof=[built])
                    return


EVALUATES = pattern(r"eval|valid|test|predict|infer|sample|generate|report|embed|probe|score")
"""Functions that are expected to run without gradients."""


def _switched_off(project: Project, call: Call) -> ast.AST | None:
    """What turns gradients off around ``call`` while training."""
    found = under_no_grad(project, call.node, call.scope)
    if found is not None:
        return found
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, ast.With):
            for item in above.items:
                context = item.context_expr
                switch = isinstance(context, ast.Call) and last_name(context.func) == "set_grad_enabled"
                if switch and written(context).endswith(("(not self.training)", "(not model.training)")):
                    return above
    return None


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from _left_on(project)
    for call in surface.calls(project):
        if call.name != "backward" or call.receiver is None:
            continue
        for step in back(project, call.receiver, call.scope):
            around = under_no_grad(project, step.node, step.scope) if isinstance(step.node, ast.Call) else None
            if around is not None:
                yield guess(
                    __name__, (around, step.scope), "what the loss is made of is computed without gradients here"
                )
                return
    for owner in modules(project):
        for method in owner.children:
            for node in project.within(method, ast.With):
                if isinstance(node, ast.With) and any(turns_off(i.context_expr) for i in node.items):
                    yield guess(__name__, (node, method), "a part of the network runs without gradients here")
                    return


def _left_on(project: Project) -> Iterator[Evidence]:
    for call in project.calls("set_grad_enabled", "__enter__", "inference_mode", "no_grad"):
        statement = project.statement(call.node, call.scope)
        if not isinstance(statement, ast.Expr) or (call.name == "set_grad_enabled" and not turns_off(call.node)):
            continue
        if not _restored(project, call, call.scope):
            yield guess(__name__, call, "gradients are switched off here and not on again")


def _restored(project: Project, call: Call, scope: Scope) -> bool:
    for other in project.calls("set_grad_enabled"):
        if other.scope is scope and other.line > call.line and not turns_off(other.node):
            return "True" in written(other.node) or bool(other.node.args)
    return False
