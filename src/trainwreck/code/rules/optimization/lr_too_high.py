"""The learning rate is too high for this optimizer and model.

What: the place where the learning rate of the training comes from.
Why it matters: steps overshoot; the loss jumps, stays high or becomes NaN.
When it is fine: whether it is too high, only the run can tell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.order import OPTIMIZERS
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place, training_arguments
from trainwreck.code.surface import Surface
from trainwreck.code.values import Proof, values
from trainwreck.core.evidence import Evidence

BAD = """
import torch
def main(model, lr=5.0):
    opt = torch.optim.SGD(model.parameters(), lr=lr)  # expect # place
    return opt
"""
GOOD = """
def main(model):
    return model
"""

Place = Call | tuple[ast.AST, Scope]


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    place = rate_place(project)
    if place is not None:
        yield guess(__name__, place[0], "the learning rate is handed over here", proof=place[1])


def rate_place(project: Project) -> tuple[Place, Proof] | None:
    """Where the optimizer (or the Trainer's arguments) gets its learning rate, and where that number is written."""
    for call in training_arguments(project):
        place = keyword_place(call, "learning_rate")
        if place is not None:
            known = values(project, call.argument("learning_rate"), call.scope)
            return place, known[0].proof if known else ()
    for name in sorted(OPTIMIZERS):
        for call in project.calls(name):
            if call.name in OPTIMIZERS and (call.node.args or call.node.keywords):
                known = values(project, call.argument("lr", 1), call.scope)
                return call, known[0].proof if known else ()
    return None
