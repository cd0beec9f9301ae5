"""Small updates of pure bf16 weights.

What: the weights are cast to bf16, and a plain optimizer of torch trains all of them with a rate of 1e-5 or less; or
an average of weights (EMA) is kept in bf16.
Why it matters: bf16 has 8 bits of mantissa: updates below 1/256 of a weight are rounded away and the weights stand
still.
When it is fine: with fp32 weights under autocast, adapters, or stochastic rounding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    bound_to,
    later,
    optimizers,
    source,
    trains,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.rounding import averages_in_bfloat16, lost_in_bfloat16
from trainwreck.code.rule import sighting
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def main(model, loader, criterion):
    model = model.to(torch.bfloat16)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-5)  # expect
    for x, y in loader:
        opt.zero_grad()
        criterion(model(x), y).backward()
        opt.step()
""",
    """
import torch
LR = 2e-6
def main(net, loader):
    net.bfloat16()
    opt = torch.optim.SGD(net.parameters(), lr=LR)  # expect
    for x in loader:
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()
""",
)
GOOD = """
import torch
def main(model, other, loader, criterion):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-5)
    other.to(torch.bfloat16)
    big = torch.optim.AdamW(other.parameters(), lr=1e-3)
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        loss.backward()
        opt.step()
"""
SMALL = 1e-4
"""Adam moves a weight by about the rate; bf16 keeps 8 bits: a weight of 0.05 and more does not see 1e-4."""


def find(project: Project) -> Iterator[Evidence]:
    found: list[Evidence] = []
    if "bfloat16" in source(project):
        found = [*answers(__name__, project, lost_in_bfloat16), *answers(__name__, project, averages_in_bfloat16)]
    yield from found
    files = {e.where.path for e in found}
    yield from (e for e in _written(project) if e.where.path not in files)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project) or "peft" in source(project):
        return
    for built in optimizers(project):
        lr = number(project, built.argument("lr", 1), built.scope)
        value = built.argument("params", 0)
        if (
            lr is None
            or lr > SMALL
            or not isinstance(value, ast.Call)
            or not project.called(built).startswith("torch.")
        ):
            continue
        model = written(value.func.value) if isinstance(value.func, ast.Attribute) else ""
        for call in project.calls("to", "bfloat16"):
            if call.scope is not built.scope or call.receiver is None or not later(built.node, call.node):
                continue
            mine = written(call.receiver) == model or bound_to(project, call) == model
            whole = mine and (call.name == "bfloat16" or "bfloat16" in written(call.node))
            if whole:
                text = f"updates with a rate of {lr:g} are rounded away in bf16 weights"
                yield sighting(__name__, built, text, proof=[call])
                break
