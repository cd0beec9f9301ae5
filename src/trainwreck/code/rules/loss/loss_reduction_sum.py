"""The loss is summed over the batch, or averaged twice.

What: the one error that runs backward is reduced by a sum and divided by nothing, with plain SGD or with a clipped
gradient; or a mean is divided by the batch size once more; or a sum over the batch is added to averages, which it
outweighs by its number of elements.
Why it matters: the gradient scales with the batch: the rate that fits a mean is batch times too high (or too low),
and the last, smaller batch counts otherwise.
When it is fine: where the sum is divided later, for likelihoods beside a divergence (both summed), and with a rate
that was chosen for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import made, optimizers, option, source
from trainwreck.code.objective import Term, objectives
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.reductions import beside_means, lines_of_statistics, rescaled, summed
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.terms import error_kinds, reductions
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
def train(net, loader):
    crit = nn.CrossEntropyLoss(reduction="sum")  # expect
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for x, y in loader:
        loss = crit(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
import torch.nn.functional as F
class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.05)
    def step(self, x, y):
        loss = F.mse_loss(self.net(x), y, reduction="none").sum()  # expect
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
""",
    """
import torch
import torch.nn.functional as F
def train(net, loader):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.cross_entropy(net(x), y) / len(x)  # expect
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
from torch import nn
def train(net, loader, accumulate):
    crit = nn.CrossEntropyLoss(reduction="sum")
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    total = 0.0
    for x, y in loader:
        loss = crit(net(x), y) / len(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += F.cross_entropy(net(x), y).item() * len(x)
        part = F.cross_entropy(net(x), y) / accumulate
        part.backward()
        rows = F.mse_loss(net(x), y, reduction="none").sum(1).mean()
        rows.backward()
        tiny = F.mse_loss(net(x), y, reduction="sum") * 1e-3
        tiny.backward()
"""
SLOW = 2e-3
"""A rate below this may have been chosen for a sum over some dozens of samples."""


def find(project: Project) -> Iterator[Evidence]:
    if any(rescaled(run) for run in rehearsals(project)):
        return
    found = list(_written(project))
    if found:
        statistics = {line for run in rehearsals(project) for line in lines_of_statistics(run)}
        yield from (item for item in found if item.where.line not in statistics)
    else:
        yield from further(__name__, project, (), summed, beside_means)


def _written(project: Project) -> Iterator[Evidence]:
    for call, terms in objectives(project):
        if len(terms) != 1:
            continue
        term = terms[0]
        if not error_kinds(project, term) or term.scope.name.startswith("eval"):
            continue
        how = reductions(project, term)
        if how == {"sum"} and not term.factors and _scales(project):
            place = _where(project, term)
            yield sighting(__name__, place, "the loss is summed over the batch and divided by nothing", proof=[call])
        elif how == {"mean"} and (divisor := _batch_size(term)) and not _accumulates(project):
            place = (project.statement(divisor, term.scope), term.scope)
            yield sighting(
                __name__, place, "a mean over the batch is divided by the size of the batch again", proof=[call]
            )


def _scales(project: Project) -> bool:
    """True for plain SGD at an ordinary rate: its step is proportional to the gradient."""
    built = optimizers(project)
    for call in built:
        rate = option(project, call, "lr", 1)
        known = number(project, rate[0], rate[1]) if rate is not None else None
        if call.name == "SGD" and known is not None and known > SLOW:
            return len(built) == 1
    return False


def _where(project: Project, term: Term) -> tuple[ast.AST, Scope]:
    for node in ast.walk(term.node):
        if isinstance(node, ast.Call):
            for maker in made(project, node.func, term.scope):
                if maker.argument("reduction") is not None:
                    return maker.node, maker.scope
    return project.statement(term.node, term.scope), term.scope


def _batch_size(term: Term) -> ast.expr | None:
    """The divisor that is the number of samples of the batch."""
    for factor in term.factors:
        text = written(factor.node)
        if factor.inverse and re.search(
            r"^len\((x|xb|y|yb|batch|inputs?|images?|data|labels?|targets?)\)$|\.size\(0\)$|\.shape\[0\]$|^batch_size$",
            text,
        ):
            return factor.node
    return None


def _accumulates(project: Project) -> bool:
    return bool(re.search(r"accum|micro", source(project), re.IGNORECASE)) or any(
        last_name(c.node.func) == "no_sync" for c in project.calls("no_sync")
    )
