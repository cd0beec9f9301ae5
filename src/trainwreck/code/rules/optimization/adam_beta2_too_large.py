"""A moment that forgets too slowly.

What: Adam with a literal second beta of 0.9999 or more, or with the two betas the wrong way round.
Why it matters: its memory is ten thousand steps: after a change of the gradients the step size is wrong for long. With
the two swapped it is the direction of the step that is long out of date.
When it is fine: for tiny batches and very long runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    only,
    optimizers,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.rates import beta2
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def build(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99999))  # expect
""",
    """
from torch.optim import Adam
BETAS = (0.9, 0.9999)
def build(model):
    return Adam(model.parameters(), betas=BETAS)  # expect
""",
    """
import torch
class Trainer:
    def __init__(self, model, b1=0.99, b2=0.9):  # expect
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(b1, b2))
    def step(self, x):
        self.opt.zero_grad()
        self.model(x).mean().backward()
        self.opt.step()
trainer = Trainer(torch.nn.Linear(4, 1))
for x in torch.randn(10, 8, 4):
    trainer.step(x)
""",
)
GOOD = """
import torch
def build(model, b):
    return torch.optim.AdamW(model.parameters(), betas=(0.9, 0.999)), torch.optim.Adam(model.parameters(), betas=b)
def fit(model, loader):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.95, 0.95))
    other = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.5, 0.9))
    for x in loader:
        opt.zero_grad()
        model(x).mean().backward()
        opt.step()
        other.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), beta2)


def _seen(project: Project) -> Iterator[Evidence]:
    for built in optimizers(project):
        value = only(project, option(project, built, "betas", 2))
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], float) and 0.9999 <= value[1] < 1:
            yield sighting(__name__, built, f"a second beta of {value[1]:g} remembers {1 / (1 - value[1]):,.0f} steps")
