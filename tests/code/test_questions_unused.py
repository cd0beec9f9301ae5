"""What is made, saved or counted and then never used. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.absent import never_set
from trainwreck.code.rehearsal.questions.losses import swapped
from trainwreck.code.rehearsal.questions.unused import divides_by_zero, never_called, stays_zero, weights_not_loaded

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader
"""
NET = """
class Net(nn.Module):
    def __init__(self, use=True):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.extra = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])#MARK
        self.norms = nn.ModuleList([nn.LayerNorm(16) for _ in range(2)])
        self.use = use
        self.head = nn.Linear(16, 2)
    def forward(self, x):
        h = self.body(x)
        FORWARD
        return self.head(h)
net = Net()
opt = torch.optim.Adam(net.parameters())
for x, y in loader:
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
"""
FORWARDS = (
    ("for n in self.norms:\n            h = n(h)", "  # here"),
    ("for layer, n in zip(self.extra, self.norms):\n            h = n(h)", "  # here"),
    ("for layer, n in zip(self.extra, self.norms):\n            h = n(layer(h))", ""),
    ("for i, n in enumerate(self.norms):\n            h = n(self.extra[i](h))", ""),
    ("for n in self.norms:\n            h = n(h)\n        h = h + 0 * self.extra[0].weight.sum()", ""),
    ("for n in self.norms:\n            h = n(h)\n        if not self.use:\n            h = self.extra[0](h)", ""),
)
RESUME = """
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
def fit(steps):
    for i, (x, y) in zip(range(steps), loader):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
fit(100)
torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, "c.pt")
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
blob = torch.load("c.pt")
LOADS
fit(100)
"""
LOADS = (
    'opt.load_state_dict(blob["opt"])  # here',
    'net.load_state_dict(blob["net"])\nopt.load_state_dict(blob["opt"])',
    'net.load_state_dict(blob["net"])',
)
LOOP = """
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
for x, y in loader:
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
@torch.no_grad()
def accuracy(loader):
    right, total = 0, 0
    for x, y in loader:
        COUNT
    return RESULT
print(accuracy(test))
"""
RIGHT = "right += (net(x).argmax(1) == y).sum().item()"
ZEROS = (
    (stays_zero, "total += len(y)", "right / total  # here"),
    (stays_zero, f"{RIGHT}; total += len(y)", "right / total"),
    (divides_by_zero, RIGHT, "right / total  # here"),
    (divides_by_zero, f"{RIGHT}; total += len(y)", "right / total"),
    (divides_by_zero, RIGHT, "right / max(total, 1)"),
    (divides_by_zero, RIGHT, "right / len(loader.dataset)"),
)
MISSPELT = NET.replace("self.head = nn.Linear", "self.haed = nn.Linear")
MISSING = (
    (never_set, MISSPELT.replace("self.head(h)", "self.head(h)  # here")),
    (never_set, NET),
    (never_set, MISSPELT.replace(
        "def forward", "def __getattr__(self, name):\n        return super().__getattr__(name)\n    def forward")),
    (never_set, NET.replace("self.head = nn.Linear(16, 2)", "pass") + "net.head = nn.Linear(16, 2)\n"),
)  # fmt: skip
SWAPPED = (
    (swapped, LOOP.replace("F.cross_entropy(net(x), y)", "F.cross_entropy(y, net(x))  # here")),
    (swapped, LOOP.replace("F.cross_entropy(net(x), y)", "nn.BCEWithLogitsLoss()(y.float(), net(x)[:, 0])  # here")),
    (swapped, LOOP.replace("F.cross_entropy(net(x), y)", "F.cross_entropy(target=y, input=net(x))")),
    (swapped, LOOP.replace("F.cross_entropy(net(x), y)", "F.mse_loss(y, net(x))")),
)


def filled(code: str) -> str:
    """The programs above with what is right in every gap."""
    return (
        code.replace("FORWARD", FORWARDS[2][0]).replace("#MARK", "").replace("COUNT", RIGHT).replace("RESULT", "right")
    )


CASES = [
    *((never_called, NET.replace("FORWARD", code).replace("#MARK", mark)) for code, mark in FORWARDS),
    *((weights_not_loaded, RESUME.replace("LOADS", code)) for code in LOADS),
    *((question, LOOP.replace("COUNT", count).replace("RESULT", result)) for question, count, result in ZEROS),
    *((q, filled(code)) for q, code in (*MISSING, *SWAPPED)),
]  # fmt: skip


@pytest.mark.parametrize(("question", "code"), CASES)
def test_marked_lines_are_answered_and_no_other(question: Question, code: str) -> None:
    assert answered(question, HEAD + code) == marked(HEAD + code)
