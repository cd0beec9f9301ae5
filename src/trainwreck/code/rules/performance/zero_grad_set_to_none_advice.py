"""Gradients are filled with zeros instead of being released.

What: ``zero_grad(set_to_none=False)`` is written out.
Why it matters: it keeps the memory and costs a write; None is the default since torch 2.0.
When it is fine: where code reads ``.grad`` between steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.values import is_false
from trainwreck.core.evidence import Evidence

BAD = (
    """
def step(optimizer):
    optimizer.zero_grad(set_to_none=False)  # expect
""",
    """
class Trainer:
    def reset(self):
        self.opt.zero_grad(False)  # expect
""",
)
GOOD = """
def step(optimizer, model):
    optimizer.zero_grad()
    model.zero_grad(set_to_none=True)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("zero_grad"):
        if is_false(call.argument("set_to_none", 0)):
            yield sighting(__name__, call, "set_to_none=False keeps and clears the memory of all gradients")
