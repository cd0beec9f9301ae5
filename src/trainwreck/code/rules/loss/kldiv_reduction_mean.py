"""The KL divergence is averaged over all elements.

What: ``kl_div`` or ``KLDivLoss`` with ``reduction`` left at, or set to, ``mean``.
Why it matters: the sum is divided by batch times classes: the divergence is too small by the number of classes.
When it is fine: where it is scaled back by hand; ``batchmean`` is the mathematical definition.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import (
    complete,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.losses import kl_mean
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def distill(s, t):
    return F.kl_div(F.log_softmax(s, -1), F.softmax(t, -1))  # expect
""",
    """
from torch import nn
class Distill:
    def __init__(self):
        self.kl = nn.KLDivLoss()  # expect
""",
)
GOOD = """
import torch.nn.functional as F
from torch import nn
def distill(s, t, kw, n):
    a = F.kl_div(s, t, reduction="batchmean") + F.kl_div(s, t, reduction="none").sum(-1).mean()
    return a, nn.KLDivLoss(reduction="sum"), nn.KLDivLoss(**kw), F.kl_div(s, t) * n
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from answers(__name__, project, kl_mean)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("kl_div", "KLDivLoss"):
        if not project.called(call).startswith("torch.nn") or not complete(project, call):
            continue
        at = option(project, call, "reduction")
        if at is not None and not (isinstance(at[0], ast.Constant) and at[0].value == "mean"):
            continue
        if any(option(project, call, n) is not None for n in ("size_average", "reduce")):
            continue
        above = project.parent(call.node, call.scope)
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult):
            continue
        yield sighting(
            __name__, call, "the mean over all elements is no divergence; batchmean divides by the batch alone"
        )
