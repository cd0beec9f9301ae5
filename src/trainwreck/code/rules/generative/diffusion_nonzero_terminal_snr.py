"""The last noise level of a diffusion schedule still carries much of the signal.

What: ``betas = linspace(start, end, T)`` with numbers for which the product of ``1 - beta`` stays above 0.15: more
than a third of the amplitude of the data is left at the last step.
Why it matters: sampling starts from pure noise, which the network has never seen (arXiv:2305.08891).
When it is fine: where sampling starts from a noised sample, or T is a number of steps that other code replaces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.bounds import interval
from trainwreck.code.calls import Call, written
from trainwreck.code.facts import source, trains
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.sample_ranges import signal_left
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def schedule(T=100):
    betas = torch.linspace(1e-4, 0.02, T)  # expect
    return torch.cumprod(1 - betas, 0)
def train(net, x, opt):
    abar = schedule()
    net(x * abar[-1]).mean().backward()
""",
    """
import torch
CFG = {"steps": 200, "beta_start": 1e-4, "beta_end": 5e-3}
class Diffusion:
    def __init__(self, cfg):
        self.betas = torch.linspace(cfg["beta_start"], cfg["beta_end"], cfg["steps"])  # expect
        self.alphas_bar = (1.0 - self.betas).cumprod(0)
def train(net, x):
    d = Diffusion(CFG)
    net(x).mean().backward()
""",
)
GOOD = """
import torch
def schedule(T=1000):
    betas = torch.linspace(1e-4, 0.02, T)
    short = torch.linspace(1e-4, 0.2, 100)
    grid = torch.linspace(0.0, 1.0, 50)
    return torch.cumprod(1 - betas, 0), torch.cumprod(1 - short, 0), grid
def unknown(T, end):
    betas = torch.linspace(1e-4, end, T)
    return torch.cumprod(1 - betas, 0)
def train(net, x):
    net(x).mean().backward()
"""
LEFT = 0.15
"""Share of the variance of the data at the last step; DDPM (arXiv:2006.11239) leaves 4e-5, its 1,000 steps from 1e-4 to
0.02."""
MOST = 0.5
"""With more of the data than of the noise in its last step, nothing like it is ever drawn at the start of sampling."""
MANY = 20_000
"""Steps that are multiplied; no schedule has more."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), signal_left)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project) or "cumprod" not in source(project):
        return
    for call in project.calls("linspace"):
        statement = project.statement(call.node, call.scope)
        if not re.search(r"beta", written(statement).split("linspace")[0]) or len(call.node.args) < 3:
            continue
        left = _left(project, call)
        if left is not None and left > LEFT:
            text = f"{left:.0%} of the signal's variance is left at the last step of this schedule"
            yield sighting(__name__, (statement, call.scope), text, severity="warning" if left > MOST else None)


def _left(project: Project, call: Call) -> float | None:
    """The product of 1 - beta, None where a number is unknown."""
    ends = [interval(project, a, call.scope) for a in call.node.args[:3]]
    if any(low != high for low, high in ends):
        return None
    start, end, steps = (low for low, _ in ends)
    squared = isinstance(project.parent(call.node, call.scope), ast.BinOp)
    if squared or not 2 <= steps <= MANY or not 0 <= start < 1 or not 0 < end < 1:
        return None
    product = 1.0
    for index in range(int(steps)):
        product *= 1 - (start + (end - start) * index / (int(steps) - 1))
    return product
