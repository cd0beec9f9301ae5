"""The running statistics of batch norm can't be right at evaluation.

What: ``momentum`` of a torch batch norm is 0 or next to nothing, or 0.9 and more as in other libraries, where it means
the share that is kept; torch means the share of the new batch. Or the run is too short for a small momentum.
Why it matters: near 0 the statistics stay at mean 0 and variance 1; with 0.99 they are those of the last batch:
evaluation differs from training.
When it is fine: where evaluation runs in train mode on purpose, or ``track_running_stats=False``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import BATCHNORMS, only, option, source
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.horizons import statistics_stay
from trainwreck.code.rehearsal.questions.left_behind import statistics_left_behind
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
    """
from functools import partial
from torch import nn
NORMS = {"bn": partial(nn.BatchNorm1d, momentum=1e-5), "gn": partial(nn.GroupNorm, 1)}  # expect
""",
    """
from dataclasses import dataclass
from torch import nn
@dataclass
class Config:
    bn_momentum: float = 1e-6
class Block(nn.Module):
    def __init__(self, cfg: Config, norm=nn.BatchNorm2d):
        super().__init__()
        self.norm = norm(8, momentum=cfg.bn_momentum)  # expect
""",
    """
from torch import nn
class Norm(nn.BatchNorm2d):
    def __init__(self, width):
        super().__init__(width, eps=1e-3, momentum=0.997)  # expect
""",
    """
from torch import nn
def tune(net):
    for layer in net.modules():
        if not isinstance(layer, nn.BatchNorm2d):
            continue
        layer.momentum = 1e-6  # expect
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
f = nn.BatchNorm2d(8, momentum=1 - 0.9997)
g = nn.InstanceNorm2d(8, momentum=1e-6)
optimizer.momentum = 0
"""
KEPT = 0.9
"""From here on somebody means the share that is kept (TensorFlow's default is 0.99); torch's default is 0.1."""


STILL = 1e-4
"""Below it the statistics need more than 10,000 steps to follow; the smallest in use is 3e-4 (1 - 0.9997)."""


def find(project: Project) -> Iterator[Evidence]:
    if "BatchNorm" in source(project):
        yield from further(__name__, project, _written(project), statistics_stay, statistics_left_behind)


def _written(project: Project) -> Iterator[Evidence]:
    for call, shift in _layers(project):
        at = option(project, call, "momentum", 2 + shift)
        if at is None:
            continue
        if only(project, option(project, call, "track_running_stats", 4 + shift)) is False:
            continue
        found = [k.value for k in values(project, *at)]
        if len(found) == 1:
            yield from _told((call.node, call.scope), found[0])
    for scope in project.scopes:
        for node in project.within(scope, ast.Assign):
            assert isinstance(node, ast.Assign)
            target = node.targets[0]
            if not isinstance(target, ast.Attribute) or target.attr != "momentum" or scope.kind == "class":
                continue
            if _of_norms(project, node, scope):
                found = [k.value for k in values(project, node.value, scope)]
                if len(found) == 1:
                    yield from _told((node, scope), found[0])


def _layers(project: Project) -> Iterator[tuple[Call, int]]:
    """Calls that make a batch norm of torch, with the place of their first argument: by its own name, by another
    one (``norm(8)``), by ``partial(nn.BatchNorm2d, ...)`` and by ``super().__init__`` of a class made from it."""
    for walked in project.walked.values():
        for node, scope in walked.calls:
            call = Call(node, scope)
            if call.name in BATCHNORMS:
                if project.called(call).startswith("torch."):
                    yield call, 0
            elif call.name == "partial" and node.args and _is_norm(project, node.args[0], scope):
                yield call, 1
            elif call.name == "__init__" and written(call.receiver) == "super()":
                owner = scope.owner
                if owner is not None and project.is_a(owner, *sorted(BATCHNORMS)):
                    yield call, 0
            elif call.argument("momentum") is not None and _is_norm(project, node.func, scope):
                yield call, 0


def _is_norm(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """True if all that ``node`` may name are batch norms of torch."""
    if last_name(node) in BATCHNORMS and isinstance(node, ast.Name | ast.Attribute):
        return project.dotted(node, scope).startswith("torch.")
    if isinstance(node, ast.IfExp):
        return _is_norm(project, node.body, scope, depth + 1) and _is_norm(project, node.orelse, scope, depth + 1)
    if depth > 4 or not isinstance(node, ast.Name | ast.Attribute):
        return False
    sources: list[tuple[ast.expr, Scope]] = []
    for binding in project.bindings(node, scope):
        if binding.kind == "param":
            sources += project.arguments(binding)
        elif binding.kind == "assign" and binding.value is not None and not binding.path:
            sources.append((binding.value, binding.scope))
        else:
            return False
    return bool(sources) and all(_is_norm(project, value, where, depth + 1) for value, where in sources)


NAMED = pattern(r"BatchNorm|_bn\b")


def _of_norms(project: Project, node: ast.Assign, scope: Scope) -> bool:
    """True if the object of ``x.momentum = ...`` was asked for being a batch norm: around it, before it, in a loop
    over those."""
    target = node.targets[0]
    name = written(target.value) if isinstance(target, ast.Attribute) else ""
    for above in project.ancestors(node, scope):
        if isinstance(above, ast.If) and NAMED.search(written(above.test)):
            return True
        if isinstance(above, ast.For) and written(above.target) == name:
            skipped = [s for s in above.body if isinstance(s, ast.If) and isinstance(s.body[-1], ast.Continue)]
            tests = [written(s.test) for s in skipped if s.lineno < node.lineno]
            return any(t.startswith("not isinstance") and NAMED.search(t) for t in tests) or bool(
                NAMED.search(written(above.iter))
            )
    return False


def _told(place: tuple[ast.AST, Scope], value: object) -> Iterator[Evidence]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if value == 0:
        yield sighting(__name__, place, "momentum 0: the running mean and variance never change")
    elif 0 < value < STILL:
        text = f"momentum {value:g}: the running statistics need some {1 / value:,.0f} steps to follow the data"
        yield sighting(__name__, place, text)
    elif KEPT <= value < 1:
        text = f"momentum {value:g}: in torch the running statistics are then almost those of the last batch"
        yield sighting(__name__, place, text)
