"""The running statistics of batch norm can't be right at evaluation.

What: ``momentum`` of a torch batch norm is 0, or 0.9 and more as in other libraries, where it means the share that
is kept; torch means the share of the new batch.
Why it matters: with 0 the statistics stay at mean 0 and variance 1; with 0.99 they are those of the last batch:
evaluation differs from training.
When it is fine: where evaluation runs in train mode on purpose, or ``track_running_stats=False``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import BATCHNORMS, only, option, source
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
norm = nn.BatchNorm2d(8, momentum=0.0)  # expect
""",
    """
import torch.nn as nn
MOMENTUM = 0.99
def block(a, b):
    return nn.Sequential(nn.Conv1d(a, b, 3), nn.BatchNorm1d(b, 1e-3, MOMENTUM))  # expect
""",
    """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for m in self.modules():
            if isinstance(m, torch.nn.BatchNorm2d):
                m.momentum = 0  # expect
""",
)
GOOD = """
from torch import nn
a = nn.BatchNorm2d(8)
b = nn.BatchNorm2d(8, momentum=0.01)
c = nn.BatchNorm2d(8, momentum=None)
d = nn.BatchNorm1d(8, momentum=0.99, track_running_stats=False)
def e(m):
    return nn.BatchNorm2d(8, momentum=1 - 0.99)
optimizer.momentum = 0
"""
KEPT = 0.9
"""From here on somebody means the share that is kept (TensorFlow's default is 0.99); torch's default is 0.1."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*sorted(BATCHNORMS)):
        at = option(project, call, "momentum", 2)
        if at is None or not project.called(call).startswith("torch."):
            continue
        if only(project, option(project, call, "track_running_stats", 4)) is False:
            continue
        found = [k.value for k in values(project, *at)]
        if len(found) == 1:
            yield from _told((call.node, call.scope), found[0])
    if "BatchNorm" not in source(project):
        return
    for scope in project.scopes:
        for node in project.within(scope, ast.Assign):
            assert isinstance(node, ast.Assign)
            target = node.targets[0]
            if not isinstance(target, ast.Attribute) or target.attr != "momentum" or scope.kind == "class":
                continue
            around = [a for a in project.ancestors(node, scope) if isinstance(a, ast.If)]
            if any(re.search(r"BatchNorm|_bn\b", written(a.test)) for a in around):
                found = [k.value for k in values(project, node.value, scope)]
                if len(found) == 1:
                    yield from _told((node, scope), found[0])


def _told(place: tuple[ast.AST, Scope], value: object) -> Iterator[Evidence]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if value == 0:
        yield sighting(__name__, place, "momentum 0: the running mean and variance never change")
    elif KEPT <= value < 1:
        text = f"momentum {value:g}: in torch the running statistics are then almost those of the last batch"
        yield sighting(__name__, place, text)
