"""softmax without an axis.

What: ``F.softmax(x)`` or ``nn.Softmax()`` without ``dim``.
Why it matters: torch guesses the axis from the rank (0 for 3 dimensions, 1 for 2 or 4) and warns: the rows may not
sum to one.
When it is fine: never; the guess is deprecated.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    complete,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def predict(model, x):
    return F.softmax(model(x))  # expect
""",
    """
from torch import nn
head = nn.Sequential(nn.Linear(4, 3), nn.Softmax())  # expect
""",
    """
from torch.nn.functional import log_softmax
def f(x):
    return log_softmax(x)  # expect
""",
)
GOOD = """
import torch
import torch.nn.functional as F
from scipy.special import softmax
def predict(model, x, kw):
    a = F.softmax(model(x), dim=-1), F.log_softmax(x, 1), torch.nn.Softmax(dim=1), torch.nn.Softmax(1)
    return a, softmax(x), F.softmax(x, **kw), x.softmax(-1)
"""
FUNCTIONS = ("softmax", "log_softmax", "softmin")
LAYERS = ("Softmax", "LogSoftmax", "Softmin")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*FUNCTIONS, *LAYERS):
        full = project.called(call)
        layer = call.name in LAYERS
        if not full.startswith("torch.nn." if layer else "torch.nn.functional.") or not complete(project, call):
            continue
        if option(project, call, "dim", 0 if layer else 1) is None:
            yield sighting(__name__, call, f"{call.name} without dim: the axis is guessed from the rank")
