"""A checkpoint is loaded into a model whose head has another size.

What: the model that receives the state is built with another number of classes (or another width) than the saved
one.
Why it matters: ``load_state_dict`` reports "size mismatch" and loads nothing.
When it is fine: where the head's keys are removed first, or ``ignore_mismatched_sizes=True`` is meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.stored import wrong_sizes
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"size mismatch for",)
ERROR = "RuntimeError: size mismatch for head.weight: copying a param with shape torch.Size([5, 64])"
BAD = """
import torch
from model import Net
def restore(path):
    model = Net(num_classes=7)  # expect
    state = torch.load(path)
    model.load_state_dict(state)  # fails
"""
GOOD = """
def restore(model, state):
    state = {k: v for k, v in state.items() if not k.startswith("head")}
    model.load_state_dict(state, strict=False)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, wrong_sizes)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in surface.calls(project):
        if call.name == "load_state_dict" and call.receiver is not None:
            made = [c for c in constructors(project, call.receiver, call.scope) if c.name != "load_state_dict"]
            inner = [c for c in made if project.resolve(c.node.func, c.scope) is None or len(made) == 1] or made
            before = [c for c in inner if c.scope is not call.scope or c.line <= call.line]
            for found in sorted(before or inner, key=lambda c: (c.scope is not call.scope, -c.line)):
                yield guess(__name__, found, "the model that the state is loaded into is built here", [call])
                return
        if call.name == "from_pretrained":
            yield guess(__name__, call, "the model is built with another head here")
            return
