"""The optimizer or the training data never meet the accelerator.

What: ``accelerator.prepare`` gets the model, and the optimizer that steps (or the loader that is looped over) is not
among what it gets.
Why it matters: the optimizer steps without the loss scale and in every micro-batch; the loader gives every process the
same data, on the CPU.
When it is fine: with DeepSpeed, where placeholders are used, and where the data are shared out by hand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import bound_to, optimizers
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.rules.accelerate.accelerate_plain_backward import prepares
from trainwreck.code.seek import LOADERS
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import torch
from accelerate import Accelerator
def main(model, loader):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, loader = accelerator.prepare(model, loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        optimizer.step()  # expect
        optimizer.zero_grad()
""",
    """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
def main(model, data):
    accelerator = Accelerator()
    train_loader = DataLoader(data, batch_size=8, shuffle=True)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, opt = accelerator.prepare(model, opt)
    for batch in train_loader:  # expect
        accelerator.backward(model(**batch).loss)
        opt.step()
        opt.zero_grad()
""",
)
GOOD = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
def main(model, data, rest):
    accelerator = Accelerator()
    loader = DataLoader(data, batch_size=8, shuffle=True)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        opt.step()
def apart(model, data):
    accelerator = Accelerator()
    loader = DataLoader(data, batch_size=8)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model = accelerator.prepare(model)
    opt = accelerator.prepare_optimizer(opt)
    loader = accelerator.prepare_data_loader(loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        opt.step()
def many(model, opt, parts):
    accelerator = Accelerator()
    model, *parts = accelerator.prepare(model, *parts)
    opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    by_scope: dict[object, list[Call]] = {}
    for call in prepares(project):
        by_scope.setdefault(call.scope, []).append(call)
    for calls in by_scope.values():
        scope = calls[0].scope
        given = {written(a) for c in calls for a in c.node.args} | {
            written(a)
            for c in project.calls("prepare_optimizer", "prepare_data_loader", "prepare_model")
            if c.scope is scope
            for a in c.node.args
        }
        if any(isinstance(a, ast.Starred) for c in calls for a in c.node.args):
            continue
        backward = [c for c in project.calls("backward") if c.scope is scope]
        if not backward:
            continue
        for built in optimizers(project):
            name = bound_to(project, built) if built.scope is scope else ""
            steps = [c for c in project.calls("step") if c.scope is scope and written(c.receiver) == name]
            if name and name not in given and steps and not any("Dummy" in g for g in given):
                text = f"{name} was never given to the accelerator: it steps without its loss scale"
                yield sighting(
                    __name__, steps[0], text, proof=[built, calls[0]], fix=Fix(f"prepare(model, {name}, ...)")
                )
        yield from _loaders(project, calls, given, backward)


def _loaders(project: Project, calls: list[Call], given: set[str], backward: list[Call]) -> Iterator[Evidence]:
    scope = calls[0].scope
    for built in project.calls(*LOADERS):
        name = bound_to(project, built) if built.scope is scope else ""
        if not name or name in given or any(k.arg == "sampler" for k in built.node.keywords):
            continue
        for node in project.within(scope, ast.For):
            if isinstance(node, ast.For) and _over(node.iter, name) and _holds(node, backward):
                text = f"{name} was never given to the accelerator: every process gets the same data, on the CPU"
                place = (node.iter, scope)
                yield sighting(__name__, place, text, proof=[built, calls[0]], fix=Fix(f"prepare(model, ..., {name})"))


def _over(node: ast.expr, name: str) -> bool:
    while isinstance(node, ast.Call) and node.args and getattr(node.func, "id", "") in ("enumerate", "tqdm"):
        node = node.args[0]
    return written(node) == name


def _holds(loop: ast.For, backward: list[Call]) -> bool:
    return any(n is c.node for n in ast.walk(loop) for c in backward)
