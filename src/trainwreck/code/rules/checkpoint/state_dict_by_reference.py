"""The best state is kept by reference and changes with the model.

What: ``best = model.state_dict()`` without a copy, loaded after more training.
Why it matters: a state dict holds the live tensors; what is restored is the last state, not the best.
When it is fine: with ``copy.deepcopy`` or clones, or where it is saved to disk at once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.order import loops
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.anchors import compared_with_itself
from trainwreck.code.rehearsal.questions.checkpoints import by_reference
from trainwreck.code.rehearsal.questions.keeping import same_network, written_back
from trainwreck.code.rehearsal.questions.merged_weights import of_one_network
from trainwreck.code.rehearsal.questions.one_network import moved_towards_itself
from trainwreck.code.rule import sighting
from trainwreck.code.seek import is_module
from trainwreck.core.evidence import Evidence

BAD = (
    """
def main(model, loader, epochs):
    best, best_state = 0.0, None
    for epoch in range(epochs):
        acc = fit(model, loader)
        if acc > best:
            best = acc
            best_state = model.state_dict()  # expect
    model.load_state_dict(best_state)
""",
    """
def main(model, loader, epochs):
    top, keep = 0.0, None
    for epoch in range(epochs):
        score = fit(model, loader)
        if score > top:
            top, keep = score, model.state_dict()  # expect
    model.load_state_dict(keep)
""",
    """
import torch
from torch import nn
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
top, keep = 9.0, None
for epoch in range(30):
    loss = nn.functional.mse_loss(net(torch.randn(8, 4)), torch.randn(8, 2))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if loss.item() < top:
        top = loss.item()
        keep = {"epoch": epoch, "net": dict(net.state_dict())}  # expect
torch.save(keep, "best.pt")
""",
)
GOOD = (
    """
import copy, torch
from torch import nn
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
top, keep = 9.0, None
for epoch in range(30):
    loss = nn.functional.mse_loss(net(torch.randn(8, 4)), torch.randn(8, 2))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if loss.item() < top:
        top = loss.item()
        keep = {"epoch": epoch, "net": copy.deepcopy(net.state_dict())}
        torch.save({"epoch": epoch, "net": dict(net.state_dict())}, "last.pt")
torch.save(keep, "best.pt")
torch.save({"best": keep, "last": {"net": net.state_dict()}}, "both.pt")
""",
    """
import copy, torch
def main(model, loader, epochs):
    best_state = None
    for epoch in range(epochs):
        if fit(model, loader):
            best_state = copy.deepcopy(model.state_dict())
            last = {k: v.clone() for k, v in model.state_dict().items()}
            now = model.state_dict()
            torch.save(now, "x.pt")
    model.load_state_dict(best_state)
""",
)


OTHER = pattern(r"loader|sampler|sched|dl$|scaler|accelerator", re.IGNORECASE)
"""Objects whose state dict is a copy, or no model's."""
NETWORK = pattern(r"model|net$|network|policy|module", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        _seen(project),
        by_reference,
        same_network,
        written_back,
        compared_with_itself,
        moved_towards_itself,
        of_one_network,
    )


def _seen(project: Project) -> Iterator[Evidence]:
    loaded: dict[int, set[str]] = {}
    for call in project.calls("load_state_dict"):
        for argument in call.node.args[:1]:
            loaded.setdefault(id(call.scope), set()).add(written(argument))
            if isinstance(argument, ast.Name):
                for binding in call.scope.bindings.get(argument.id, ()):
                    if isinstance(binding.value, ast.Name | ast.Attribute):
                        loaded[id(call.scope)].add(written(binding.value))
    for call in project.calls("state_dict"):
        statement = project.statement(call.node, call.scope)
        target = _target(statement, call.node)
        if target is None:
            continue
        if call.receiver is None or OTHER.search(written(call.receiver)) or not _network(project, call):
            continue
        name = written(target)
        if name in loaded.get(id(call.scope), ()) and loops(project, call.node, call.scope):
            inside = loops(project, call.node, call.scope)[-1]
            if not any(_loaded_in(n, name) for n in ast.walk(inside)):
                yield sighting(__name__, call, "the state is kept by reference: it changes with further training")


def _target(statement: ast.AST | None, node: ast.AST) -> ast.expr | None:
    """What ``node`` is assigned to: ``x = node`` or ``y, x = value, node``."""
    match statement:
        case ast.Assign(targets=[target, *_], value=value) if value is node:
            return target
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            return next((n for n, v in zip(names, values, strict=True) if v is node), None)
    return None


def _network(project: Project, call: Call) -> bool:
    """True if the state is that of a network: by its class, or because it is asked for its parameters or mode."""
    assert call.receiver is not None
    if is_module(project, call.receiver, call.scope):
        return True
    name = written(call.receiver)
    text = call.scope.module.text
    return bool(NETWORK.search(name)) or any(f"{name}.{use}(" in text for use in ("parameters", "train", "eval"))


def _loaded_in(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and written(node.func).endswith("load_state_dict")
        and any(written(a) == name for a in node.args)
    )
