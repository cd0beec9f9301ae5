"""The loss is minimised with the wrong sign.

What: the only loss of the program is the negative of a distance or cross entropy, and a plain optimizer minimises
it.
Why it matters: the error is maximised: the loss falls without bound and predictions get worse.
When it is fine: for adversarial ascent, or with ``maximize=True``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import (
    optimizers,
    source,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
def train(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        opt.zero_grad()
        loss = -F.cross_entropy(model(x), y)  # expect
        loss.backward()
        opt.step()
""",
    """
import torch
from torch import nn
class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters())
        self.criterion = nn.MSELoss()
    def step(self, x, y):
        for _ in range(3):
            self.opt.zero_grad()
            loss = self.criterion(self.model(x), y)
            (-loss).backward()  # expect
            self.opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def train(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        opt.zero_grad()
        logp = -F.log_softmax(model(x), 1)
        loss = -F.cosine_similarity(model(x), y).mean() + F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
"""
ASCENT = re.compile(
    r"adv|attack|perturb|ascent|maximi[sz]e|domain|revers|gan|discrim|unlearn|forget|policy|reward", re.IGNORECASE
)
KINDS = {
    "crossentropy",
    "mse",
    "l1",
    "smoothl1",
    "huber",
    "nll",
    "binarycrossentropywithlogits",
    "bcewithlogits",
    "bce",
}


def find(project: Project) -> Iterator[Evidence]:
    calls = list(project.calls("backward"))
    if len(calls) != 1 or len(optimizers(project)) != 1 or ASCENT.search(source(project)):
        return
    call = calls[0]
    for node, scope in ends(project, call.receiver, call.scope, reshapes=False) if call.receiver is not None else []:
        if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.USub):
            continue
        for inner, where in ends(project, node.operand, scope, reshapes=False):
            if (
                isinstance(inner, ast.Call)
                and any(inner is known.node for known in losses(project))
                and loss_kind(project, Call(inner, where)) & KINDS
            ):
                yield sighting(__name__, (node, scope), "the negative of the error is minimised", proof=[call])
