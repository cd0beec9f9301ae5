"""Attention dropout that does not know the mode.

What: ``scaled_dot_product_attention`` gets a fixed ``dropout_p`` in a module, without asking ``self.training``.
Why it matters: attention stays random in evaluation: outputs differ between calls.
When it is fine: with ``dropout_p=0.0`` or a value that depends on the mode.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import enclosing_class, written
from trainwreck.code.facts import (
    complete,
    guarded,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.dropouts import attention_stays_random
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
from torch import nn
class Attention(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.dropout = dropout
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)  # expect
""",
    """
import torch
class Attention(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, None, 0.1, True)  # expect
""",
)
GOOD = (
    """
import torch.nn.functional as F
from torch import nn
class Attention(nn.Module):
    def __init__(self, p):
        self.p = p
    def forward(self, q, k, v):
        p = self.p if self.training else 0.0
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=p)
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0)
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p * self.training)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
""",
    """
import torch.nn.functional as F
def attend(q, k, v, dropout_p):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p)
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), attention_stays_random)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("scaled_dot_product_attention"):
        owner = enclosing_class(call.scope)
        at = option(project, call, "dropout_p", 4)
        if owner is None or at is None or not project.is_a(owner, "Module") or not complete(project, call):
            continue
        node, scope = at
        fixed = isinstance(node, ast.Constant) and isinstance(node.value, float | int) and node.value > 0
        own = isinstance(node, ast.Attribute) and written(node.value) == "self"
        if not fixed and not own:
            continue
        if own and _follows_mode(project, node, scope, owner):
            continue
        if guarded(project, call.node, call.scope, re.compile("training")):
            continue
        yield sighting(
            __name__, call, f"dropout_p={written(node)} stays on in evaluation: it does not ask self.training"
        )


def _follows_mode(project: Project, node: ast.expr, scope: Scope, owner: Scope) -> bool:
    """True if the attribute is zero, a property, or set according to the mode anywhere."""
    attribute = node.attr if isinstance(node, ast.Attribute) else ""
    bindings = project.attribute(owner, attribute)
    if not bindings or any("training" in written(b.node) for b in bindings):
        return True
    known = values(project, node, scope)
    return bool(known) and all(k.value == 0 for k in known)
