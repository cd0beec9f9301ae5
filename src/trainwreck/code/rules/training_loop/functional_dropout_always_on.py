"""Functional dropout that does not know the mode.

What: ``F.dropout(x, p)`` in the ``forward`` of a module without ``training=``; its default is True.
Why it matters: dropout stays active after ``model.eval()``: predictions are random and worse.
When it is fine: Monte-Carlo dropout on purpose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    complete,
    guarded,
    only,
    option,
    source,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.dropouts import own_stays_random, stays_random
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.dropout(x, 0.5)  # expect
        return self.fc2(x)
""",
    """
import torch
class Block(torch.nn.Module):
    def forward(self, x):
        return x + torch.nn.functional.dropout(self.mlp(x), p=self.p)  # expect
""",
    """
from torch.nn.functional import dropout2d
from torch.nn import Module
class Conv(Module):
    def forward(self, x):
        return dropout2d(self.conv(x))  # expect
""",
)
GOOD = (
    """
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        x = F.dropout(x, 0.5, self.training)
        x = F.dropout(x, p=0.5, training=self.training)
        if self.training:
            x = F.dropout(x, 0.1)
        return F.dropout(x, 0.0)
""",
    """
import torch.nn.functional as F
from torch import nn
class McDropoutNet(nn.Module):
    def forward(self, x):
        return F.dropout(self.fc(x), 0.5)
""",
)
FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
PURPOSE = pattern(r"mc_?drop|monte|bayes|uncertain|prenet|always", re.IGNORECASE)


TRAINING = re.compile("training")
MEANT = pattern(r"mc_?drop|monte|bayes|uncertain|ensemble|passes|spread|predictive", re.IGNORECASE)
"""Programs that may want dropout in prediction: they average over masks."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), stays_random, own_stays_random)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _made_in_place(project)
    for call in project.calls(*FUNCTIONS):
        if "torch.nn.functional" not in project.called(call) or not complete(project, call):
            continue
        owner = call.scope.owner
        given = option(project, call, "training", 2)
        fixed = given is not None and _fixed(given[0]) and not MEANT.search(source(project))
        if owner is None or not project.is_a(owner, "Module") or (given is not None and not fixed):
            continue
        if PURPOSE.search(owner.name) or guarded(project, call.node, call.scope, TRAINING):
            continue
        if only(project, option(project, call, "p", 1)) == 0:
            continue
        how = "training= is always true here" if fixed else "training= is not passed, and its default is True"
        yield sighting(__name__, call, f"this dropout ignores eval(): {how}")


def _made_in_place(project: Project) -> Iterator[Evidence]:
    """``nn.Dropout(0.1)(x)`` in a forward: made anew at each call, it is no part of the network and knows no eval()."""
    for call in project.calls("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"):
        owner, above = call.scope.owner, project.parent(call.node, call.scope)
        if owner is None or call.scope.name != "forward" or not project.is_a(owner, "Module"):
            continue
        run = isinstance(above, ast.Call) and above.func is call.node
        if run and "torch.nn" in project.called(call) and not guarded(project, call.node, call.scope, TRAINING):
            yield sighting(__name__, call, "this layer is made anew at each call, in training mode: it ignores eval()")


def _fixed(value: ast.expr) -> bool:
    """True for ``True``, and for a test of something other than the mode (``self.p > 0``)."""
    literal = isinstance(value, ast.Constant) and value.value is True
    return literal or (isinstance(value, ast.Compare) and "train" not in written(value).lower())
