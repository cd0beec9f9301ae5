"""The optimizer that receives a state has other parameter groups than the saved one.

What: the optimizer is built differently on resume: groups for weight decay, a frozen part, added parameters.
Why it matters: ``optimizer.load_state_dict`` refuses, or maps the moments to other parameters.
When it is fine: where the resume code builds model and optimizer by the same function.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.regrouped import other_groups
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"different number of parameter groups", r"parameter group that doesn't match the size")
ERROR = "ValueError: loaded state dict has a different number of parameter groups"
BAD = """
import torch
def main(model, path):
    opt = torch.optim.Adam(model.parameters())
    torch.save(opt.state_dict(), path)
    opt = torch.optim.Adam([{"params": model.body.parameters()}, {"params": model.head.parameters()}])  # expect
    opt.load_state_dict(torch.load(path))  # fails
"""
GOOD = """
import torch
def main(model, path):
    opt = torch.optim.Adam(model.parameters())
    opt.load_state_dict(torch.load(path))
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, other_groups)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in surface.calls(project):
        if call.name != "load_state_dict" or call.receiver is None:
            continue
        made = list(constructors(project, call.receiver, call.scope))
        before = [c for c in made if c.scope is call.scope and c.line <= call.line] or made
        for found in sorted(before, key=lambda c: -c.line):
            yield guess(__name__, found, "the optimizer that the state is loaded into is built here", [call])
            return
