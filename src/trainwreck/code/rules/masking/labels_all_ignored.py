"""Every label of a batch is the ignored one.

What: the code that puts -100 into the labels covers all of them; or a mask keeps the losses of just those elements
that have nothing to learn (``nll[labels == VOID].mean()``).
Why it matters: the loss is a mean over nothing: NaN, or exactly zero.
When it is fine: for single samples within a batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.kept_apart import only_ignored, real_left_out
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = (
    """
def mask(labels, prompt):
    labels[:prompt] = -100  # expect # place
    return labels
""",
    """
import torch
from torch import nn
import torch.nn.functional as F
VOID = 255
net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 1))
opt = torch.optim.Adam(net.parameters())
def pixel_loss(logits, labels):
    keep = labels == VOID  # expect
    nll = F.cross_entropy(logits, torch.where(keep, 0, labels), reduction="none")
    return nll[keep].mean()
for step in range(100):
    images, labels = torch.randn(4, 3, 32, 32), torch.randint(0, 4, (4, 32, 32))
    loss = pixel_loss(net(images), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)
GOOD = (
    """
def add(a):
    return a - 100
""",
    """
import torch
from torch import nn
import torch.nn.functional as F
VOID = 255
net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 1))
opt = torch.optim.Adam(net.parameters())
def pixel_loss(logits, labels):
    void = labels == VOID
    nll = F.cross_entropy(logits, torch.where(void, 0, labels), reduction="none")
    return (nll * (~void).float()).sum() / (~void).sum() + 0.1 * nll[labels == 3].sum() / 1000
for step in range(100):
    images, labels = torch.randn(4, 3, 32, 32), torch.randint(0, 4, (4, 32, 32))
    loss = pixel_loss(net(images), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, only_ignored)
    yield from answers(__name__, project, real_left_out)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for scope in project.scopes:
        for node in project.within(scope, ast.Assign, ast.Call, ast.ListComp, ast.BinOp, ast.IfExp):
            for child in ast.iter_child_nodes(node):
                if (
                    isinstance(child, ast.UnaryOp)
                    and isinstance(child.operand, ast.Constant)
                    and child.operand.value == 100
                ):
                    yield guess(__name__, (node, scope), "labels are set to the ignored one here")
                    return
        for bindings in scope.bindings.values():
            for binding in bindings:
                value = binding.value
                if isinstance(value, ast.Name) and "IGNORE" in value.id.upper():
                    yield guess(__name__, (binding.node, scope), "labels are set to the ignored one here")
                    return
