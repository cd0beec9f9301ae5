"""The negative log-likelihood gets no logarithms.

What: the first argument of ``NLLLoss`` is a softmax or the bare output of a linear layer.
Why it matters: the loss only rewards large outputs: it turns negative and the probabilities mean nothing.
When it is fine: after ``log_softmax`` or ``log``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import linear, made
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.answer_margins import probabilities_summed
from trainwreck.code.rehearsal.questions.counted_losses import rates_as_logs
from trainwreck.code.rehearsal.questions.densities import weights_free
from trainwreck.code.rehearsal.questions.losses import nll_input
from trainwreck.code.rehearsal.questions.own_losses import raw_picked
from trainwreck.code.rehearsal.questions.share_scores import shares_for_logarithms
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import call_ends, ends, made_by
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def train(model, loader):
    for x, y in loader:
        p = F.softmax(model(x), dim=1)
        F.nll_loss(p, y).backward()  # expect
""",
    """
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
criterion = nn.NLLLoss()  # expect
def train(loader):
    for x, y in loader:
        criterion(model(x), y).backward()
""",
    """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(4, 8), nn.Linear(8, 3)
    def forward(self, x):
        h = self.trunk(x).relu()
        return h, self.head(h)
class Objective:
    def __init__(self):
        self.cls = nn.NLLLoss()  # expect
    def __call__(self, out, batch):
        return self.cls(out[1], batch["kind"])
def train(loader, net=Net(), objective=Objective()):
    for batch in loader:
        objective(net(batch["x"]), batch).backward()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
from torch import nn
soft = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=1))
criterion = nn.NLLLoss()
def train(model, loader):
    for x, y in loader:
        criterion(soft(x), y).backward()
        criterion(F.log_softmax(model(x), 1), y).backward()
        criterion(torch.log(torch.softmax(model(x), 1) + 1e-9), y).backward()
        criterion(model(x), y).backward()
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(
        further(
            __name__,
            project,
            answers(__name__, project, nll_input),
            raw_picked,
            weights_free,
            rates_as_logs,
            shares_for_logarithms,
            probabilities_summed,
        )
    )
    yield from found
    if not found:
        yield from _written(project)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for loss in losses(project):
        value = loss.argument("input", 0)
        kinds = loss_kind(project, loss)
        if value is None or "nll" not in kinds or "crossentropy" in kinds or "gaussiannll" in kinds:
            continue
        found = call_ends(project, value, loss.scope)
        if not found or len(found) != len(ends(project, value, loss.scope)):
            continue
        if all(linear(project, c) or made_by(project, c) & {"softmax", "Softmax"} for c in found):
            text = "no log-softmax lies between the network and the negative log-likelihood"
            built = [m for m in made(project, loss.node.func, loss.scope) if m.name.endswith("Loss")]
            place = built[0] if built else loss
            if id(place.node) not in told:
                told.add(id(place.node))
                yield sighting(__name__, place, text, proof=[loss, *found[:1]])
