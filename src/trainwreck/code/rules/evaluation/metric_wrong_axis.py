"""A metric takes the largest logit along the wrong axis.

What: ``argmax(0)`` (or ``dim=0``) over logits of shape (batch, classes) and a comparison with the labels; or a score
that is said to be one of each class, of hits that are summed over the classes.
Why it matters: what is counted as accuracy has nothing to do with the predictions.
When it is fine: where the classes really lie on axis 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.misfits import clashes
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.agreement import (
    another_axis,
    another_scale,
    cut_along_another,
    one_sum_twice,
)
from trainwreck.code.rehearsal.questions.corrupted import rank_turned
from trainwreck.code.rehearsal.questions.judged_shapes import hits_of_all_pairs
from trainwreck.code.rehearsal.questions.quotas import turned_round
from trainwreck.code.rehearsal.questions.scores import chosen_along_another, chosen_among_samples, counted_by_sample
from trainwreck.code.rehearsal.questions.shares import misdivided
from trainwreck.code.rehearsal.questions.top_scores import (
    any_of_the_samples,
    itself_nearest,
    least_alike,
    left_out_wins,
)
from trainwreck.code.rehearsal.questions.unused import stays_zero
from trainwreck.code.rehearsal.questions.worked_figures import figure_wrong
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import is_module
from trainwreck.code.spine import ends
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
def accuracy(loader):
    model = nn.Linear(4, 3)
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(dim=0) == y).sum()  # expect
    return hits
""",
    """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(500, 10), (torch.rand(500, 5) > 0.8).float()
def score(inputs, labels):
    guess = (net(inputs).sigmoid() > 0.5).float()
    hits = (guess * labels).sum(dim=1)  # expect
    total = guess.sum(dim=1) + labels.sum(dim=1)
    return (2 * hits / (total + 1e-8)).mean()
for epoch in range(10):
    for idx in torch.randperm(len(x)).split(50):
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print("macro F1", score(x, y).item())
""",
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
        self.opt = torch.optim.Adam(self.net.parameters())
        self.loader = DataLoader(TensorDataset(torch.randn(500, 10), torch.randint(0, 5, (500,))), batch_size=50)
    def fit(self):
        for x, y in self.loader:
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
    @torch.no_grad()
    def accuracy(self):
        right = 0
        for x, y in self.loader:
            _, best = self.net(x).max(0)  # expect
            right += best.eq(y).sum().item()
        return right / 500
trainer = Trainer()
trainer.fit()
print(trainer.accuracy())
""",
)
GOOD = (
    """
import torch
from torch import nn
def accuracy(loader):
    model = nn.Linear(4, 3)
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(dim=1) == y).sum()
    return hits
""",
    """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(500, 10), (torch.rand(500, 5) > 0.8).float()
def score(inputs, labels):
    guess = (net(inputs).sigmoid() > 0.5).float()
    hits = (guess * labels).sum(dim=0)
    total = guess.sum(dim=0) + labels.sum(dim=0)
    return (2 * hits / (total + 1e-8)).mean()
for epoch in range(10):
    for idx in torch.randperm(len(x)).split(50):
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print("macro F1", score(x, y).item())
""",
    """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(500, 10), (torch.rand(500, 5) > 0.8).float()
def score(inputs, labels):
    guess = (net(inputs).sigmoid() > 0.5).float()
    hits = (guess * labels).sum(dim=1)
    total = guess.sum(dim=1) + labels.sum(dim=1)
    return (2 * hits / (total + 1e-8)).mean()
for epoch in range(10):
    for idx in torch.randperm(len(x)).split(50):
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print("F1 per sample (macro is elsewhere)", score(x, y).item())
""",
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
        self.opt = torch.optim.Adam(self.net.parameters())
        self.loader = DataLoader(TensorDataset(torch.randn(500, 10), torch.randint(0, 5, (500,))), batch_size=50)
    def fit(self):
        for x, y in self.loader:
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
    @torch.no_grad()
    def accuracy(self):
        right = 0
        for x, y in self.loader:
            _, best = self.net(x).max(1)
            right += best.eq(y).sum().item()
        return right / 500
trainer = Trainer()
trainer.fit()
print(trainer.accuracy())
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        _written(project),
        chosen_among_samples,
        chosen_along_another,
        counted_by_sample,
        stays_zero,
        turned_round,
        misdivided,
        another_axis,
        another_scale,
        cut_along_another,
        one_sum_twice,
        least_alike,
        itself_nearest,
        left_out_wins,
        any_of_the_samples,
        rank_turned,
        hits_of_all_pairs,
        figure_wrong,
    )


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("argmax"):
        axis = call.argument("dim", 0) or call.argument("axis")
        above = project.parent(call.node, call.scope)
        if not (isinstance(axis, ast.Constant) and axis.value == 0) or call.receiver is None:
            continue
        compared = isinstance(above, ast.Compare) or _compared(project, call)
        made = [
            n
            for n, s in ends(project, call.receiver, call.scope)
            if isinstance(n, ast.Call) and is_module(project, n.func, s)
        ]
        if compared and made:
            yield sighting(__name__, call, "the largest value is taken over the batch, not over the classes")
    for clash in clashes(project, "axis-choice"):
        yield sighting(__name__, clash.place, clash.text, proof=clash.by)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for function in project.functions:
        if any(w in function.name.lower() for w in ("metric", "accuracy", "score", "evaluate", "f1")):
            for node in project.within(function, ast.Compare, ast.Return):
                if "==" in written(node) or isinstance(node, ast.Return):
                    yield guess(__name__, (node, function), "the metric is computed here")
                    return


def _compared(project: Project, call: Call) -> bool:
    statement = project.statement(call.node, call.scope)
    if (
        isinstance(statement, ast.Assign)
        and statement.value is call.node
        and isinstance(statement.targets[0], ast.Name)
    ):
        name = statement.targets[0].id
        return any(
            isinstance(n, ast.Compare) and name in (written(n.left), *map(written, n.comparators))
            for n in ast.walk(call.scope.node)
        )
    return False
