"""The first argument of the KL divergence is no logarithm.

What: ``F.kl_div(softmax(a), softmax(b))``: the first argument must be log-probabilities, the second probabilities.
Why it matters: the value is no divergence, may be negative, and its gradient points elsewhere.
When it is fine: with ``log_softmax`` on the first.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.losses import kl_input
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import call_ends, made_by
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def distill(student, teacher, x):
    return F.kl_div(F.softmax(student(x), -1), F.softmax(teacher(x), -1), reduction="batchmean")  # expect
""",
    """
from torch import nn
kl = nn.KLDivLoss(reduction="batchmean")
def distill(s, t):
    p = s.softmax(dim=-1)
    return kl(p, t)  # expect
""",
)
GOOD = """
import torch.nn.functional as F
def distill(student, teacher, x):
    a = F.log_softmax(student(x), -1)
    b = F.kl_div(a, F.softmax(teacher(x), -1), reduction="batchmean")
    return b + F.kl_div(F.softmax(student(x), -1).log(), F.softmax(teacher(x), -1), reduction="sum")
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from answers(__name__, project, kl_input)


def _written(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        value = loss.argument("input", 0)
        if value is None or not loss_kind(project, loss) & {"kldiv"}:
            continue
        found = call_ends(project, value, loss.scope)
        if found and all(made_by(project, c) & {"softmax", "Softmax"} for c in found):
            yield sighting(
                __name__, loss, "the first argument is a softmax, and log-probabilities are expected", proof=found[:1]
            )
