"""The length of a schedule does not fit the number of its steps.

What: the schedule is stepped a known number of times, and its horizon (``T_max``, ``total_steps``, ``step_size``,
``milestones``, the length of a warm-up) is far longer, so that it never gets there, or a cosine is much shorter, so
that the rate rises again. Of several schedules one behind the other, one gets other steps than it is made for.
Why it matters: the rate never decays (or never warms up), or it is high again when training ends.
When it is fine: cosine with restarts on purpose, a run that is stopped early by a criterion.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import schedulers
from trainwreck.code.order import constructors, kind_of
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.byhand import out_of_step
from trainwreck.code.rehearsal.questions.joined_schedules import out_of_turn
from trainwreck.code.rehearsal.questions.spans import for_other_things, misfit
from trainwreck.code.rounds import rounds
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def main(net, batch, loss_of):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=100)  # expect
    for epoch in range(1000):
        opt.zero_grad()
        loss_of(net, batch()).backward()
        opt.step()
        sched.step()
""",
    """
import torch
WARMUP = 5000  # expect
def main(net, batch, loss_of):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / WARMUP))
    for step in range(600):
        opt.zero_grad()
        loss_of(net, batch()).backward()
        opt.step()
        sched.step()
""",
    """
import torch
cfg = {"epochs": 20, "decay_every": 50}  # expect
class Trainer:
    def __init__(self, net):
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=cfg["decay_every"], gamma=0.1)
    def run(self, loader):
        for epoch in range(cfg["epochs"]):
            self.epoch(loader)
            self.sched.step()
def main(net, loader):
    Trainer(net).run(loader)
if __name__ == "__main__":
    main(torch.nn.Linear(2, 2), [])
""",
)
GOOD = """
import torch
def main(net, batch, loss_of, loader, epochs=30):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    cos = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 10))
    steps = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[15, 25])
    unknown = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs * len(loader))
    restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=5)
    for epoch in range(epochs):
        for x in loader:
            unknown.step()
        cos.step()
        warm.step()
        steps.step()
        restarts.step()
"""
LONG = 1.5
"""Of the steps taken: a cosine that is cut there still has a quarter of its rate."""
SHORT = 0.6
"""A cosine that is this short has risen by more than a half again when training ends."""
HORIZONS = {"CosineAnnealingLR": ("T_max", 1), "OneCycleLR": ("total_steps", 2), "PolynomialLR": ("total_iters", 1)}


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), misfit, out_of_turn, out_of_step)


def _seen(project: Project) -> Iterator[Evidence]:
    built = {id(c.node): c for c in schedulers(project)}
    for call in project.calls("step"):
        if call.receiver is None or kind_of(project, call) != "scheduler":
            continue
        low, high = rounds(project, call.node, call.scope)
        makers = [c for c in constructors(project, call.receiver, call.scope) if id(c.node) in built]
        if low != high or not math.isfinite(high) or high < 4 or len(makers) != 1 or _several(project, call):
            continue
        found = _misfit(project, makers[0], high)
        if found is not None:
            place, text = found
            yield sighting(__name__, place, text, proof=[call])


def _several(project: Project, call: Call) -> bool:
    """True if the step is under a condition, or the loop can be left early."""
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, ast.If | ast.Try):
            return True
        if isinstance(above, ast.For) and any(isinstance(n, ast.Break) for n in ast.walk(above)):
            return True
    return False


def _misfit(project: Project, made: Call, steps: float) -> tuple[tuple[ast.AST, Scope], str] | None:
    if made.name in HORIZONS:
        name, place = HORIZONS[made.name]
        node = made.argument(name, place)
        length = _known(project, node, made.scope)
        if node is not None and length is not None and length > LONG * steps:
            return _written(project, node, made.scope), f"{name}={length:g} for {steps:g} steps: the rate hardly decays"
        if node is not None and length is not None and made.name == "CosineAnnealingLR" and length < SHORT * steps:
            return _written(project, node, made.scope), f"T_max={length:g} for {steps:g} steps: the rate rises again"
    if made.name == "StepLR":
        node = made.argument("step_size", 1)
        length = _known(project, node, made.scope)
        if node is not None and length is not None and length > LONG * steps:
            return origin(project, node, made.scope), f"step_size={length:g} for {steps:g} steps: the rate never decays"
    if made.name == "MultiStepLR":
        node = made.argument("milestones", 1)
        marks = [_known(project, e, made.scope) for e in node.elts] if isinstance(node, ast.List | ast.Tuple) else []
        if node is not None and marks and all(m is not None and m > LONG * steps for m in marks):
            return (node, made.scope), f"no milestone lies within the {steps:g} steps"
    return _warm_up(project, made, steps)


def _written(project: Project, node: ast.expr, scope: Scope) -> tuple[ast.AST, Scope]:
    """Where a length is decided: where its name is given a value, or here if the name stands for other things too."""
    return (node, scope) if for_other_things(project, node) else origin(project, node, scope)


def _warm_up(project: Project, made: Call, steps: float) -> tuple[tuple[ast.AST, Scope], str] | None:
    """A linear warm-up that is longer than the run."""
    if made.name == "LinearLR":
        node = made.argument("total_iters", 3)
        start, end = _known(project, made.argument("start_factor", 1), made.scope), made.argument("end_factor", 2)
        length = _known(project, node, made.scope)
        if node is not None and length is not None and length > LONG * steps and end is None and (start or 0.3) < 1:
            return origin(project, node, made.scope), f"a warm-up of {length:g} steps in a run of {steps:g}"
    if made.name != "LambdaLR":
        return None
    function = made.argument("lr_lambda", 1)
    body, scope = _body(project, function, made.scope)
    for inner in ast.walk(body) if body is not None else ():
        if isinstance(inner, ast.Call) and last_name(inner.func) == "min":
            for part in inner.args:
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
                    length = _known(project, part.right, scope)
                    if length is not None and length > LONG * steps:
                        return origin(
                            project, part.right, scope
                        ), f"a warm-up of {length:g} steps in a run of {steps:g}"
    return None


def _body(project: Project, node: ast.expr | None, scope: Scope) -> tuple[ast.AST | None, Scope]:
    if isinstance(node, ast.Lambda):
        return node.body, scope
    target = project.resolve(node, scope) if node is not None else None
    return (target.node, target) if target is not None and target.kind == "function" else (None, scope)


def _known(project: Project, node: ast.expr | None, scope: Scope) -> float | None:
    low, high = interval(project, node, scope)
    return low if low == high and math.isfinite(low) else None
