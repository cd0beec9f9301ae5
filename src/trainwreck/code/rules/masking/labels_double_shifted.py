"""Labels are shifted twice.

What: the data are already inputs and next tokens (``x[:, :-1]``, ``x[:, 1:]``), and the loss drops the first label
and the last logit again.
Why it matters: the model learns the token after the next one; generation skips every other token.
When it is fine: where the labels are a copy of the inputs, as ``labels=`` of transformers expects.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.flow import Step, back
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.tokens import double_shifted
from trainwreck.code.rehearsal.questions.walked import two_ahead
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import loss_kind, losses
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
class LM:
    def __call__(self, x, y):
        logits = self.net(x)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), y[:, 1:].flatten())  # expect
def train(loader, model=LM()):
    for s in loader:
        x, y = s[:, :-1], s[:, 1:]
        loss = model(x, y)
        loss.backward()
""",
    """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
class Windows(Dataset):
    def __getitem__(self, i):
        chunk = self.ids[i : i + self.width + 1]
        return chunk[:-1], chunk[1:]
def train(model, data):
    for x, y in DataLoader(Windows(), 8):
        logits = model(x)
        shift_logits = logits[..., :-1, :].contiguous()
        shift_labels = y[..., 1:].contiguous()  # expect
        loss = F.cross_entropy(shift_logits.view(-1, 50), shift_labels.view(-1))
        loss.backward()
""",
    """
import torch
import torch.nn.functional as F
def get_batch(data, n):
    ix = torch.randint(len(data) - n - 1, (8,))
    x = torch.stack([data[i : i + n] for i in ix])
    y = torch.stack([data[i + 1 : i + n + 1] for i in ix])
    return x, y
def train(model, data):
    x, y = get_batch(data, 32)
    logits = model(x)[:, :-1]
    loss = F.cross_entropy(logits.transpose(1, 2), y[:, 1:])  # expect
    loss.backward()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def get_batch(data, n):
    ix = torch.randint(len(data) - n - 1, (8,))
    x = torch.stack([data[i : i + n] for i in ix])
    y = torch.stack([data[i + 1 : i + n + 1] for i in ix])
    return x, y
def train(model, data, rows):
    x, y = get_batch(data, 32)
    F.cross_entropy(model(x).transpose(1, 2), y).backward()
    F.cross_entropy(model(rows)[:, :-1].transpose(1, 2), rows[:, 1:]).backward()
    body = rows[:, 1:]
    F.cross_entropy(model(body)[:, :-1].transpose(1, 2), body[:, 1:]).backward()
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from further(__name__, project, answers(__name__, project, double_shifted), two_ahead)


def _written(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        logits, target = loss.argument("input", 0), loss.argument("target", 1)
        if logits is None or target is None or not loss_kind(project, loss) & {"crossentropy", "nll"}:
            continue
        cut = _slices(project, logits, loss.scope, _drops_last)
        starts = _slices(project, target, loss.scope, _drops_first)
        inputs = _slices(project, logits, loss.scope, _drops_first)
        nested = [(s, e) for e in starts for s in e.chain()[1:] if s in starts and s.node is not e.node]
        if nested and cut and not inputs:
            again, before = nested[0]
            if _in_the_model(project, again.scope) and not _in_the_model(project, before.scope):
                again, before = before, again  # a network that takes labels shifts them for all its callers
            place = (project.statement(again.node, again.scope), again.scope)
            yield sighting(__name__, place, "these labels were shifted before: this is one token more", proof=[before])


def _in_the_model(project: Project, scope: Scope) -> bool:
    """True for a method of a network that is given ``labels``, by which transformers' models mean unshifted ones."""
    return scope.owner is not None and "labels" in scope.params and project.is_a(scope.owner, "Module")


def _slices(project: Project, node: ast.expr, scope: Scope, wanted: object) -> list[Step]:
    assert callable(wanted)
    return [s for s in back(project, node, scope) if isinstance(s.node, ast.Subscript) and wanted(s.node.slice)]


def _last(node: ast.expr) -> ast.Slice | None:
    """The slice over positions: the last one of ``[:, 1:]``, the one before the classes of ``[..., :-1, :]``."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    found = [p for p in parts if isinstance(p, ast.Slice) and (p.lower is not None or p.upper is not None)]
    return found[-1] if found else None


def _drops_first(node: ast.expr) -> bool:
    part = _last(node)
    if part is None or part.lower is None:
        return False
    if isinstance(part.lower, ast.Constant):
        return part.lower.value == 1 and part.upper is None
    lower = part.lower
    return isinstance(lower, ast.BinOp) and isinstance(lower.right, ast.Constant) and lower.right.value == 1


def _drops_last(node: ast.expr) -> bool:
    part = _last(node)
    return part is not None and part.lower is None and part.upper is not None and ast.unparse(part.upper) == "-1"
