"""The learning rate is too low for anything to be learned.

What: the number that the learning rate of the training is written as.
Why it matters: all losses stay where they began.
When it is fine: whether it is too low, only the run can tell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.order import OPTIMIZERS, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.rates import low
from trainwreck.code.rehearsal.questions.zero_rates import never_moves
from trainwreck.code.rule import guess, sighting
from trainwreck.code.rules.optimization.lr_too_high import rate_place
from trainwreck.code.rules.support import at_line
from trainwreck.code.surface import Surface
from trainwreck.code.values import number, values
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
def main(loader,
         lr=1e-6):  # expect
    model = nn.Linear(4, 2)
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    for x in loader:
        model(x).sum().backward()
        opt.step()
        opt.zero_grad()
"""
GOOD = """
import torch
from transformers import AutoModel
def main(loader, lr=1e-6):
    model = AutoModel.from_pretrained("x")
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    return opt
def by_hand(x, y):
    one, two = torch.randn(1000, 100, requires_grad=True), torch.randn(100, 10, requires_grad=True)
    opt = torch.optim.SGD([one, two], lr=1e-6)
    for t in range(500):
        loss = (x.mm(one).clamp(min=0).mm(two) - y).pow(2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
TOO_LOW = 5e-6
"""No recipe trains a network from scratch below this; 1e-5 to 5e-6 occur in fine-tuning only."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), low, never_moves)


def _seen(project: Project) -> Iterator[Evidence]:
    """Certain where a network of the program is trained from its initial weights with one rate, and a tiny one."""
    if any(True for _ in project.calls("from_pretrained", "load_state_dict", "load_from_checkpoint", "get_peft_model")):
        return
    built = [c for name in OPTIMIZERS for c in project.calls(name) if project.from_package(c, "torch")]
    if len(built) != 1 or not training_steps(project):
        return
    if built[0].name == "SGD" and any(True for _ in project.calls("sum")):
        return  # the gradient of a sum is larger by the number of its elements, and so may be the step
    if any(_sets_rate(node) for scope in project.scopes for node in scope.nodes):
        return  # the first rate is not the one that it is trained with
    known = values(project, built[0].argument("lr", 1), built[0].scope)
    raised = [number(project, c.argument("max_lr", 1), c.scope) for c in project.calls("OneCycleLR", "CyclicLR")]
    stays = all(top is not None and top <= 4 * TOO_LOW for top in raised)
    if stays and len(known) == 1 and isinstance(known[0].value, float) and 0 < known[0].value <= TOO_LOW:
        where = at_line(project, known[0].proof) or built[0]
        text = f"the learning rate is {known[0].value:g} for training from scratch"
        yield sighting(__name__, where, text, proof=built)


def _sets_rate(node: ast.AST) -> bool:
    """True for ``group["lr"] = ...``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
        return False
    return isinstance(node.slice, ast.Constant) and node.slice.value == "lr"


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    place = rate_place(project)
    if place is None:
        return
    where, proof = place
    written = at_line(project, proof)
    yield guess(__name__, written or where, "the learning rate is written here", proof=proof)
