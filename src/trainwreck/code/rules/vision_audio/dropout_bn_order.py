"""Dropout stands right before batch norm.

What: in a ``Sequential``, ``Dropout`` is followed by a batch norm (with an activation or a linear layer between at
most).
Why it matters: dropout scales the variance in training only: the running variance is wrong in evaluation.
When it is fine: with small rates; put dropout after the last batch norm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import (
    BATCHNORMS,
    DROPOUTS,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.ReLU())  # expect
""",
    """
import torch
block = torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))  # expect
""",
)
GOOD = """
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
other = nn.Sequential(nn.Dropout(0.0), nn.BatchNorm1d(8))
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("Sequential"):
        if not project.called(call).startswith("torch.nn"):
            continue
        kinds = [last_name(a) if isinstance(a, ast.Call) else "" for a in call.node.args]
        for i, kind in enumerate(kinds):
            item = call.node.args[i]
            if kind not in DROPOUTS or not isinstance(item, ast.Call):
                continue
            rate = only(project, option(project, Call(item, call.scope), "p", 0))
            following = [k for k in kinds[i + 1 : i + 3] if k]
            if rate == 0 or not any(k in BATCHNORMS for k in following):
                continue
            yield sighting(__name__, call, "the running variance is taken under dropout and does not fit evaluation")
            break
