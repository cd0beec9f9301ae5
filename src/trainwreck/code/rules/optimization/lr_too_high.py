"""The learning rate is too high for this optimizer and model.

What: the place where the learning rate of the training comes from.
Why it matters: steps overshoot; the loss jumps, stays high or becomes NaN.
When it is fine: whether it is too high, only the run can tell.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import Call
from trainwreck.code.facts import optimizers, trains
from trainwreck.code.order import OPTIMIZERS
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.byhand import blown_up
from trainwreck.code.rehearsal.questions.idle_rates import turned_round
from trainwreck.code.rehearsal.questions.rates import high, high_for_pretrained
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place, training_arguments
from trainwreck.code.surface import Surface
from trainwreck.code.values import Proof, values
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def main(model, lr=5.0):
    opt = torch.optim.SGD(model.parameters(), lr=lr)  # expect # place
    return opt
""",
    """
import torch
import torch.nn.functional as F
from torch import nn
cfg = dict(lr=10.0, epochs=3)  # expect
def main(loader):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
    for x, y in loader:
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = (
    """
def main(model):
    return model
""",
    """
import torch
from torch import nn
def words(loader, vocab):
    net = nn.Sequential(nn.Embedding(vocab, 200), nn.LSTM(200, 200))
    opt = torch.optim.SGD(net.parameters(), lr=20.0)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        opt.step()
""",
)

Place = Call | tuple[ast.AST, Scope]


TOO_HIGH = {"SGD": 5.0, "RMSprop": 0.2}
"""Far above any published recipe: SGD for networks stays below 1 (3.2 with batches of 8,192, arXiv:1706.02677)."""
ADAPTIVE = 0.2
"""Adam-like optimizers move every weight by about the rate at each step; recipes end at 0.01."""
RECURRENT, WORD_MODEL = ("LSTM", "GRU", "RNN"), 40.0
"""Language models over words are trained with SGD at rates of 20 to 30 and clipped gradients (arXiv:1708.02182)."""
SCALED = ("LambdaLR", "OneCycleLR", "CyclicLR", "MultiplicativeLR")
"""Schedules that may make another rate of it."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), high, high_for_pretrained, blown_up, turned_round)


def _seen(project: Project) -> Iterator[Evidence]:
    """Certain where one network of the program is trained with one rate that no recipe comes near."""
    if not trains(project) or any(True for _ in project.calls(*SCALED)) or not modules_or_layers(project):
        return
    for call in optimizers(project):
        rate = call.argument("lr", 1)
        if rate is None or call.name not in (*TOO_HIGH, "Adam", "AdamW", "NAdam", "RAdam", "Adamax"):
            continue
        low, high = interval(project, rate, call.scope)
        recurrent = call.name == "SGD" and any(True for _ in project.calls(*RECURRENT))
        least = WORD_MODEL if recurrent else TOO_HIGH.get(call.name, ADAPTIVE)
        if low == high and low >= least and math.isfinite(low):
            place = origin(project, rate, call.scope)
            yield sighting(__name__, place, f"a learning rate of {low:g} for {call.name}", proof=[call])


def modules_or_layers(project: Project) -> bool:
    """True where the program has a network with more than one layer."""
    return (
        sum(1 for name in ("Linear", "Conv1d", "Conv2d", "LSTM", "GRU", "Embedding") for _ in project.calls(name)) > 1
    )


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    place = rate_place(project)
    if place is not None:
        yield guess(__name__, place[0], "the learning rate is handed over here", proof=place[1])


def rate_place(project: Project) -> tuple[Place, Proof] | None:
    """Where the optimizer (or the Trainer's arguments) gets its learning rate, and where that number is written."""
    for call in training_arguments(project):
        place = keyword_place(call, "learning_rate")
        if place is not None:
            known = values(project, call.argument("learning_rate"), call.scope)
            return place, known[0].proof if known else ()
    for name in sorted(OPTIMIZERS):
        for call in project.calls(name):
            if call.name in OPTIMIZERS and (call.node.args or call.node.keywords):
                known = values(project, call.argument("lr", 1), call.scope)
                return call, known[0].proof if known else ()
    return None
