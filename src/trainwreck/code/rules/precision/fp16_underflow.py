"""Training under fp16 autocast without a gradient scaler.

What: the forward of a training step runs under ``autocast`` with fp16 (the default on CUDA), and no ``GradScaler``
exists.
Why it matters: small gradients become zero in fp16: layers stop learning without any error.
When it is fine: with bf16, on the CPU, or in evaluation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    ENGINES,
    complete,
    only,
    option,
    source,
)
from trainwreck.code.order import (
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.half_weights import unscaled
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):  # expect
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
""",
    """
from torch.cuda.amp import autocast
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast():  # expect
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
""",
)
GOOD = """
import torch
def train(model, loader, optimizer, criterion, dtype):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        with torch.autocast("cpu"):
            loss = criterion(model(x), y)
        with torch.autocast("cuda", dtype=dtype):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    with torch.no_grad(), torch.autocast("cuda"):
        model(x)
"""


def find(project: Project) -> Iterator[Evidence]:
    if ENGINES.search(source(project)):
        return
    yield from further(__name__, project, _seen(project), unscaled)


def _seen(project: Project) -> Iterator[Evidence]:
    if re.search(r"scaler", source(project), re.IGNORECASE):
        return
    for step in training_steps(project):
        for node in ast.walk(step.body):
            if not isinstance(node, ast.With):
                continue
            for item in node.items:
                call = item.context_expr
                if (
                    isinstance(call, ast.Call)
                    and last_name(call.func) == "autocast"
                    and _half(project, Call(call, step.scope))
                ):
                    text = "gradients of a forward in fp16 underflow without a GradScaler"
                    yield sighting(__name__, (call, step.scope), text, proof=step.backward[:1])


def _half(project: Project, call: Call) -> bool:
    full = project.called(call)
    if not full.startswith("torch") or not complete(project, call):
        return False
    enabled = option(project, call, "enabled", 2 if full == "torch.autocast" else 0)
    if enabled is not None and only(project, enabled) is not True:
        return False
    dtype = option(project, call, "dtype", 1)
    if dtype is not None:
        return written(dtype[0]) in ("torch.float16", "torch.half")
    if "cuda" in full:
        return True
    device = option(project, call, "device_type", 0)
    return device is not None and only(project, device) == "cuda"
