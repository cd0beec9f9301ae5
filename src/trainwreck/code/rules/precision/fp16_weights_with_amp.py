"""fp16 weights meet the gradient scaler.

What: ``model.half()`` and then ``GradScaler`` over the same parameters.
Why it matters: the scaler refuses to unscale fp16 gradients: the first step raises.
When it is fine: leave the weights in fp32; autocast casts what it should.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    halved,
    is_torch,
    made_names,
    optimizers,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.half_weights import with_scaler
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def main(model, loader, criterion):
    model = model.cuda().half()  # expect
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
""",
    """
import torch
from torch.cuda.amp import GradScaler
def run(net, batches):
    net.half()  # expect
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = GradScaler()
    for x in batches:
        scaler.scale(net(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
""",
)
GOOD = """
import torch
def main(model, teacher, loader, criterion):
    teacher = teacher.half()
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        scaler.scale(criterion(model(x), y)).backward()
        scaler.step(opt)
        scaler.update()
    model.half()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), with_scaler)


def _seen(project: Project) -> Iterator[Evidence]:
    scalers = [c for c in project.calls("GradScaler") if is_torch(project, c)]
    stepped = [
        c
        for c in project.calls("step")
        if c.receiver is not None and made_names(project, c.receiver, c.scope) & {"GradScaler"}
    ]
    if not scalers or not stepped:
        return
    for built in optimizers(project):
        value = built.argument("params", 0)
        model = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
        half = halved(project, written(model), built) if model is not None else None
        if half is not None:
            yield sighting(
                __name__, half, "the weights become fp16 here, and the scaler refuses fp16 gradients", proof=stepped[:1]
            )
