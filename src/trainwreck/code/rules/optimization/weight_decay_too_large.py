"""A weight decay that shrinks the weights away.

What: a literal ``weight_decay`` of 1 or more.
Why it matters: decay outweighs the gradient: weights shrink towards zero and the model underfits.
When it is fine: for sign-based optimizers with a tiny learning rate (Lion, Muon).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.bounds import origin
from trainwreck.code.facts import (
    only,
    optimizers,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.own_decay import shrunk
from trainwreck.code.rehearsal.questions.rates import decay, penalty
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def build(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=5.0)  # expect
""",
    """
from torch.optim import SGD
WD = 1  # expect
opt = lambda params: SGD(params, lr=0.1, momentum=0.9, weight_decay=WD)
""",
)
GOOD = """
import torch
from lion_pytorch import Lion
def build(model, wd):
    a = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    return a, Lion(model.parameters(), lr=1e-4, weight_decay=1.0), torch.optim.SGD(model.parameters(), weight_decay=wd)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), decay, penalty, shrunk)


def _seen(project: Project) -> Iterator[Evidence]:
    for built in optimizers(project):
        value = only(project, option(project, built, "weight_decay"))
        if (
            isinstance(value, int | float)
            and value >= 1
            and not isinstance(value, bool)
            and built.name not in ("Lion", "Muon")
        ):
            given = option(project, built, "weight_decay")
            place = origin(project, *given) if given is not None else built
            text = f"a weight decay of {value:g} shrinks the weights faster than they learn"
            yield sighting(__name__, place, text, proof=[built])
