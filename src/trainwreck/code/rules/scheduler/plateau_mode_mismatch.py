"""The plateau scheduler watches its metric in the wrong direction.

What: ``ReduceLROnPlateau`` with ``mode="min"`` (the default) is stepped with an accuracy, or ``mode="max"`` with a
loss.
Why it matters: every improvement counts as none: the learning rate is cut while training goes well.
When it is fine: where the value is negated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.facts import (
    made,
    only,
    option,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.plateaus import watches_the_wrong_way
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, optimizer, evaluate):
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    for epoch in range(10):
        val_acc = evaluate(model)
        scheduler.step(val_acc)  # expect
""",
    """
from torch.optim.lr_scheduler import ReduceLROnPlateau
class Trainer:
    def __init__(self, opt):
        self.sched = ReduceLROnPlateau(opt, mode="max", factor=0.5)
    def end(self, val_loss):
        self.sched.step(val_loss)  # expect
""",
)
GOOD = """
from torch.optim.lr_scheduler import ReduceLROnPlateau
def train(model, optimizer, evaluate):
    a = ReduceLROnPlateau(optimizer, mode="max")
    b = ReduceLROnPlateau(optimizer)
    for epoch in range(10):
        loss, acc = evaluate(model)
        a.step(acc)
        b.step(loss)
        b.step(-acc)
        b.step(1 - acc)
"""
HIGH = pattern(
    r"(^|_)(acc|accuracy|f1|auc|auroc|map|iou|miou|dice|bleu|rouge|recall|precision|r2|psnr|ssim)(_|\d|$)",
    re.IGNORECASE,
)
LOW = pattern(r"(^|_)(loss|mse|rmse|mae|error|err|nll|ppl|perplexity|wer|cer)(_|\d|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    found = list(answers(__name__, project, watches_the_wrong_way))
    yield from found
    files = {e.where.path for e in found}
    yield from (e for e in _written(project) if e.where.path not in files)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("step"):
        metric = call.argument("metrics", 0)
        if call.receiver is None or metric is None:
            continue
        calls = [c for c in made(project, call.receiver, call.scope) if c.name == "ReduceLROnPlateau"]
        name = _name(metric)
        if len(calls) != 1 or not name:
            continue
        mode = option(project, calls[0], "mode", 1)
        direction = only(project, mode) if mode is not None else "min"
        high, low = bool(HIGH.search(name)), bool(LOW.search(name))
        if (direction == "min" and high and not low) or (direction == "max" and low and not high):
            text = f"{name} is watched with mode={direction!r}: its improvement counts as none"
            yield sighting(__name__, call, text, proof=calls)


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(value=inner, attr="item")):
            return _name(inner)
    return ""
