"""The clipping bound is so small that it cuts every update.

What: ``clip_grad_norm_`` with a literal bound of 0.005 or less.
Why it matters: every gradient is scaled to that length: the learning rate no longer means anything, training
crawls.
When it is fine: for optimizers that ignore the length of the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    is_torch,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.own_updates import cut_to_nothing
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def step(model):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-4)  # expect
""",
    """
from torch.nn.utils import clip_grad_norm_
MAX_NORM = 0.004
def step(model):
    clip_grad_norm_(model.parameters(), max_norm=MAX_NORM)  # expect
""",
    """
from torch import nn
CFG = {"clip": 1e-7}
def step(model):
    nn.utils.clip_grad_value_(model.parameters(), CFG["clip"])  # expect
""",
)
GOOD = """
import torch
def step(model, bound):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    torch.nn.utils.clip_grad_norm_(model.parameters(), bound)
    torch.nn.utils.clip_grad_value_(model.parameters(), 1e-3)
"""
SMALL = 5e-3
"""Gradients of a network have norms around 1; the smallest bound in common recipes is 0.01."""


SMALL_VALUE = 1e-5
"""Entries of a gradient are smaller than its norm by about the root of their number: 1e-3 over 10,000 weights."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), cut_to_nothing)


def _seen(project: Project) -> Iterator[Evidence]:
    for call in project.calls("clip_grad_value_"):
        value = only(project, option(project, call, "clip_value", 1))
        if isinstance(value, int | float) and 0 < value <= SMALL_VALUE and is_torch(project, call):
            yield sighting(__name__, call, f"a bound of {value:g} on each entry cuts every update")
    for call in project.calls("clip_grad_norm_"):
        value = only(project, option(project, call, "max_norm", 1))
        if isinstance(value, int | float) and 0 < value <= SMALL and is_torch(project, call):
            yield sighting(__name__, call, f"a bound of {value:g} on the whole norm cuts every update")
