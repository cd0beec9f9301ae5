"""Loaded weights are overwritten with fresh ones.

What: after ``load_state_dict``, ``from_pretrained`` or a pretrained constructor, ``model.apply(init...)``,
``init_weights()`` or ``reset_parameters()`` runs over the whole model. Or a fresh network takes the place of the one
that was trained.
Why it matters: training starts from random weights although a checkpoint was loaded; nothing says so.
When it is fine: for a new head only, or where the initialisation stands before loading.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import later, text_of
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.left_untrained import never_the_trained_one
from trainwreck.code.rehearsal.questions.replaced import drawn_anew, left_aside, replaced, thrown_away
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
def init(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
def main(model, path):
    model.load_state_dict(torch.load(path))
    model.apply(init)  # expect
    return model
""",
    """
import torch, torchvision
def weights_init(m):
    if hasattr(m, "weight"):
        torch.nn.init.normal_(m.weight, 0, 0.02)
net = torchvision.models.resnet18(weights="DEFAULT")
net = net.cuda()
net.apply(weights_init)  # expect
""",
    """
from transformers import AutoModel
model = AutoModel.from_pretrained("bert-base-uncased")
model.init_weights()  # expect
""",
)
GOOD = """
import torch, torchvision
from torch import nn
def init(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
def freeze(m):
    m.eval()
def main(model, path):
    model.apply(init)
    model.load_state_dict(torch.load(path))
    model.apply(freeze)
    model.head.apply(init)
    model.fc = nn.Linear(3, 2)
    return model
def other(model, path, fresh):
    if path:
        model.load_state_dict(torch.load(path))
    else:
        model.apply(init)
net = torchvision.models.resnet18(weights=None)
net.apply(init)
"""
RESETS = ("init_weights", "reset_parameters", "initialize_weights", "_init_weights", "init_parameters")
DRAWS = pattern(r"init\.\w+_\(|\.(normal_|uniform_|zero_|fill_)\(|reset_parameters\(\)")


def find(project: Project) -> Iterator[Evidence]:
    asked = (replaced, thrown_away, drawn_anew, left_aside, never_the_trained_one)
    yield from further(__name__, project, _written(project), *asked)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("apply", *RESETS):
        receiver = call.receiver
        if not isinstance(receiver, ast.Name | ast.Attribute) or (call.name == "apply" and not _fresh(project, call)):
            continue
        if written(receiver).startswith("self") and call.scope.name in ("__init__", "reset"):
            continue
        loaded = _loaded(project, call, written(receiver))
        if loaded is not None:
            yield sighting(__name__, call, "this overwrites the weights that were loaded before", proof=[loaded])


def _fresh(project: Project, call: Call) -> bool:
    """True if the applied function draws weights."""
    function = project.resolve(call.node.args[0], call.scope) if call.node.args else None
    return function is not None and function.kind == "function" and bool(DRAWS.search(text_of(project, function)))


def _loaded(project: Project, call: Call, name: str) -> Call | None:
    """The last load into ``name`` before ``call``, in the same block or one around it; None if it is built anew."""
    found: Call | None = None
    for other in project.calls_by_scope.get(call.scope, ()):
        if not later(call.node, other.node):
            continue
        statement = project.statement(other.node, other.scope)
        bound = isinstance(statement, ast.Assign) and written(statement.targets[0]) == name
        loads = other.name == "load_state_dict" and other.receiver is not None and written(other.receiver) == name
        built = bound and isinstance(statement, ast.Assign) and statement.value is other.node
        if loads or (built and _pretrained(other)):
            found = other if _before(project, other, call) else None
        elif built and other.name not in ("to", "cuda", "half", "float", "train", "eval", "compile"):
            found = None
    return found


def _pretrained(call: Call) -> bool:
    if call.name == "from_pretrained":
        return True
    return any(
        k.arg in ("weights", "pretrained")
        and not (isinstance(k.value, ast.Constant) and k.value.value in (None, False))
        for k in call.node.keywords
        if isinstance(k.value, ast.Constant | ast.Attribute)
    )


def _before(project: Project, one: Call, other: Call) -> bool:
    """True if ``one`` always runs before ``other``: its block holds the other."""
    block = project.parent(project.statement(one.node, one.scope), one.scope)
    return block is other.scope.node or (
        any(a is block for a in project.ancestors(other.node, other.scope)) and not (isinstance(block, ast.If))
    )
