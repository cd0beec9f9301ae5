"""Training resumes without the moments of its optimizer.

What: the optimizer's state is saved, the model is restored, the optimizer is not.
Why it matters: momentum and second moments start from zero: a jump of the loss at the seam.
When it is fine: for evaluation, fine-tuning, or plain SGD without momentum.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import engine_in, made, optimizers, trains
from trainwreck.code.order import kind_of
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.checkpoints import optimizer_forgotten
from trainwreck.code.rehearsal.questions.resuming import state_forgotten
from trainwreck.code.rehearsal.questions.stored import averaged_again, built_again, never_kept
from trainwreck.code.rehearsal.questions.unused import weights_not_loaded
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.topics import RESTORING
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

WORDS = RESTORING
BAD = (
    """
import torch
def save(path, model, opt, step):
    torch.save({"m": model.state_dict(), "o": opt.state_dict(), "step": step}, path)
def restore(path, model, opt):
    state = torch.load(path)
    model.load_state_dict(state["m"])  # expect
    return state["step"]
""",
    """
import torch
class Loop:
    def __init__(self, net):
        self.net, self.start = net, 0
        self.opt = torch.optim.Adam(net.parameters())
    def save(self, e):
        torch.save({"w": self.net.state_dict(), "o": self.opt.state_dict(), "e": e}, "x.pt")
    def restore(self):
        blob = torch.load("x.pt")
        self.net.load_state_dict(blob["w"])  # expect
        self.start = blob["e"] + 1
""",
    """
import torch
class Session:
    def __init__(self, net):
        self.net, self.count = net, 0
        self.rule = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    def write(self, path):
        torch.save({"net": self.net.state_dict(), "rule": self.rule.state_dict(), "iteration": self.count}, path)
    def read(self, path):
        blob = torch.load(path)
        self.net.load_state_dict(blob["net"])  # expect
        self.count = blob["iteration"]
    def advance(self, x):
        self.net(x).sum().backward()
        self.rule.step()
        self.count += 1
""",
    """
import torch
def main(net, path, loader, resume):
    optimizer = torch.optim.AdamW(net.parameters())
    first = 0
    if resume:
        kept = torch.load(path)
        net.load_state_dict(kept["weights"])  # expect
        first = kept["epoch"] + 1
    for epoch in range(first, 10):
        for x in loader:
            net(x).sum().backward()
            optimizer.step()
        torch.save({"weights": net.state_dict(), "epoch": epoch}, path)
""",
)
GOOD = (
    """
import torch
def main(net, path, loader):
    parts = {"net": net, "opt": torch.optim.AdamW(net.parameters())}
    kept = torch.load(path)
    for name, part in parts.items():
        part.load_state_dict(kept[name])
    for epoch in range(kept["epoch"] + 1, 10):
        for x in loader:
            net(x).sum().backward()
            parts["opt"].step()
        torch.save({**{n: p.state_dict() for n, p in parts.items()}, "epoch": epoch}, path)
def best(net, path):
    kept = torch.load(path)
    net.load_state_dict(kept["net"])
    epoch = kept["epoch"]
    print("best epoch", epoch)
""",
    """
import torch
def save(path, model, opt, step):
    torch.save({"m": model.state_dict(), "o": opt.state_dict(), "step": step}, path)
def restore(path, model, opt):
    state = torch.load(path)
    model.load_state_dict(state["m"])
    opt.load_state_dict(state["o"])
    return state["step"]
""",
    """
import torch
from helpers import continue_from
def train(net, path, epochs, loader):
    opt = torch.optim.Adam(net.parameters())
    kept = torch.load(path)
    net.load_state_dict(kept["net"])
    first = 0
    if epochs.resume:
        first = continue_from(kept, opt)
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": first}, path)
""",
)


COUNTS = pattern(r"step|epoch|self\.(start|begin|it|iteration|done)\w* = ")
"""A function that goes on where training stopped takes its counter too."""
COUNTER = pattern(r"step|epoch|iter|seen|round|updates|progress", re.IGNORECASE)
ASKED = (optimizer_forgotten, state_forgotten, weights_not_loaded, never_kept, built_again, averaged_again)
STATELESS = frozenset(["SGD", "Rprop", "ASGD"])
"""Optimizers that hold nothing that would be missed, unless they have momentum."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), *ASKED)


def _seen(project: Project) -> Iterator[Evidence]:
    loads = [c for c in project.calls("load_state_dict") if c.receiver is not None]
    if not loads or any(_of_optimizer(project, c) or _any_object(project, c) for c in loads):
        return
    saved = [c for c in project.calls("state_dict") if _of_optimizer(project, c)]
    models = [c for c in loads if not _aside(project, c)]
    for call in models[::-1]:
        if _handed_over(project, call.scope):
            continue
        counted = _counter(project, call.scope)
        if saved and (counted or _named(project, call)):
            text = "the model is restored here, the saved optimizer state is not"
            yield sighting(__name__, call, text, proof=saved[:1])
            return
        if counted and not saved and _trains_on(project, call.scope):
            text = "training goes on from this checkpoint, but the optimizer starts anew: its state was never saved"
            yield sighting(__name__, call, text, proof=_stateful(project)[:1])
            return


def _handed_over(project: Project, scope: Scope) -> bool:
    """True if a function gets what was loaded together with an optimizer: it may restore it."""
    for call in project.calls_by_scope.get(scope, ()):
        given = [*call.node.args, *(k.value for k in call.node.keywords)]
        if not any(isinstance(a, ast.Name | ast.Attribute) and "opt" in written(a).lower() for a in given):
            continue
        if any(isinstance(a, ast.Name) and any(c.name == "load" for c in made(project, a, scope)) for a in given):
            return True
    return False


def _named(project: Project, call: Call) -> bool:
    """True for a function that takes the counter, and the optimizer or a name that speaks of resuming."""
    if not COUNTS.search(written(call.scope.node)):
        return False
    takes = any("opt" in p.lower() for p in call.scope.params)
    return takes or any(w in call.scope.name.lower() for w in ("resume", "restore", "load_check"))


def _counter(project: Project, scope: Scope) -> bool:
    """True if ``scope`` takes a counter from a loaded file and training counts on from it: ``self.step = c["step"]``
    with ``self.step += 1`` elsewhere, ``start = c["epoch"] + 1`` with ``range(start, n)``."""
    for node in project.within(scope, ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        keys = [n for n in ast.walk(node.value) if _key(n) and COUNTER.search(_key(n))]
        if not keys or not isinstance(target, ast.Name | ast.Attribute):
            continue
        if not any(_loaded(project, n, scope) for n in keys):
            continue
        name = written(target)
        if isinstance(target, ast.Attribute):
            owner = scope.owner
            bound = owner.attributes.get(target.attr, []) if owner is not None else []
            bound = [*bound, *(b for s in project.scopes for b in s.bindings.get(name, ()))]
            if any(b.kind == "augment" for b in bound) or _ranged(project, f".{target.attr}"):
                return True
        elif _ranged(project, name) or any(b.kind == "augment" for b in scope.bindings.get(name, ())):
            return True
    return _given_back(project, scope)


def _given_back(project: Project, scope: Scope) -> bool:
    """True for ``return c["epoch"] + 1`` where what is given back is where a ``range`` starts."""
    for node in project.within(scope, ast.Return):
        value = node.value if isinstance(node, ast.Return) else None
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        for number_of, item in enumerate(items):
            keys = [n for n in ast.walk(item) if _key(n) and COUNTER.search(_key(n))] if item is not None else []
            if not any(_loaded(project, n, scope) for n in keys):
                continue
            for call in project.calls(scope.name):
                statement = project.statement(call.node, call.scope)
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    target = target.elts[number_of] if len(target.elts) == len(items) else None
                resolved = project.resolve(call.node.func, call.scope) is scope
                if resolved and isinstance(target, ast.Name | ast.Attribute) and _ranged(project, written(target)):
                    return True
    return False


def _key(node: ast.AST) -> str:
    """The text by which something is taken from a table: ``c["step"]``, ``c.get("step", 0)``."""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript):
        key = node.slice
    elif isinstance(node, ast.Call) and last_name(node.func) in ("get", "pop") and node.args:
        key = node.args[0]
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _loaded(project: Project, node: ast.AST, scope: Scope) -> bool:
    table = node.value if isinstance(node, ast.Subscript) else getattr(getattr(node, "func", None), "value", None)
    return table is not None and any(c.name in ("load", "load_checkpoint") for c in made(project, table, scope))


def _ranged(project: Project, name: str) -> bool:
    """True if a ``range`` or ``while`` of the program starts from this name."""
    for call in project.calls("range", "trange", "count"):
        if call.node.args and written(call.node.args[0]).endswith(name) and (len(call.node.args) > 1):
            return True
    return False


def _stateful(project: Project) -> list[Call]:
    return [
        c
        for c in optimizers(project)
        if c.name not in STATELESS or number(project, c.argument("momentum", 2), c.scope) not in (None, 0)
    ]


def _trains_on(project: Project, scope: Scope) -> bool:
    """True where a stateful optimizer is in the file that restores, and that file trains."""
    if not trains(project) or engine_in(project, scope) or not _stateful(project):
        return False
    return all(c.scope.module is scope.module for c in _stateful(project))


def _aside(project: Project, call: Call) -> bool:
    """True for what is no model: schedulers, scalers, samplers, averages."""
    text = written(call.receiver).lower()
    return bool(re.search("sched|scaler|sampler|loader|ema", text)) or kind_of(project, call) in ("scheduler", "scaler")


def _any_object(project: Project, call: Call) -> bool:
    """True where the receiver is one of several things: a loop variable, ``getattr(self, name)``, ``things[name]``."""
    receiver = call.receiver
    if isinstance(receiver, ast.Name):
        return any(b.kind == "loop" for b in project.lookup(receiver.id, call.scope))
    return isinstance(receiver, ast.Call | ast.Subscript) and last_name(getattr(receiver, "func", receiver)) in (
        "getattr",
        "",
    )


def _of_optimizer(project: Project, call: Call) -> bool:
    text = written(call.receiver).lower()
    return "sched" not in text and ("opt" in text or kind_of(project, call) == "optimizer")
