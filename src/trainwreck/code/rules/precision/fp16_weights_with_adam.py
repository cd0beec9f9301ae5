"""fp16 weights are trained by Adam.

What: ``model.half()`` and an ``Adam`` or ``AdamW`` of torch with its default epsilon over the parameters.
Why it matters: epsilon 1e-8 is zero in fp16: where a gradient is zero the update is 0/0 and the weights turn NaN.
When it is fine: with fp32 weights under autocast, bf16, or an epsilon that fp16 can hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    complete,
    halved,
    optimizers,
    option,
    trains,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.half_weights import with_adam
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def main(model, loader, criterion):
    model = model.cuda().half()  # expect
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    for x, y in loader:
        opt.zero_grad()
        criterion(model(x.half()), y).backward()
        opt.step()
""",
    """
import torch
from torch.optim import AdamW
net = torch.nn.Linear(4, 2)
net.to(dtype=torch.float16)  # expect
opt = AdamW(net.parameters())
def train(loader):
    for x in loader:
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()
""",
)
GOOD = """
import torch
def main(model, other, loader, criterion):
    other = other.half()
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    sgd = torch.optim.SGD(other.parameters(), lr=0.1)
    safe = torch.optim.Adam(other.parameters(), eps=1e-4)
    for x, y in loader:
        opt.zero_grad()
        criterion(model(x), other(x.half())).backward()
        opt.step()
    model.half()
"""
ADAMS = frozenset(["Adam", "AdamW", "NAdam", "RAdam", "Adamax"])


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), with_adam)


def _seen(project: Project) -> Iterator[Evidence]:
    if not trains(project):
        return
    for built in optimizers(project):
        if (
            built.name not in ADAMS
            or not project.called(built).startswith("torch.optim")
            or option(project, built, "eps", 3) is not None
        ):
            continue
        value = built.argument("params", 0)
        model = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
        if model is None or not complete(project, built):
            continue
        half = halved(project, written(model), built)
        if half is not None:
            yield sighting(
                __name__, half, "the weights become fp16 here, where Adam's epsilon of 1e-8 is zero", proof=[built]
            )
