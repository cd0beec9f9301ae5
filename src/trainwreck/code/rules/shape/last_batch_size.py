"""A buffer or state has the size of a full batch, and the last batch is smaller.

What: zeros, a hidden state, a view or a mask is sized with the configured batch size instead of the size of the
batch at hand, and the loader keeps its incomplete last batch.
Why it matters: everything runs until the end of the first epoch, then a shape error.
When it is fine: with ``drop_last=True`` or a data set that the batch size divides.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.flow import Step, back
from trainwreck.code.order import loops
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.short_batches import last_is_smaller
from trainwreck.code.rule import guess
from trainwreck.code.seek import inputs, loaders
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"Expected hidden(\[\d\])? size",
    r"shape '\[.*?\]' is invalid for input of size",
    r"Expected input batch_size \(\d+\) to match target batch_size",
    r"The size of tensor a \(\d+\) must match the size of tensor b",
    r"The expanded size of the tensor",
    r"Sizes of tensors must match except in dimension",
    r"shape mismatch: value tensor",
    r"doesn't match the broadcast shape|Expected size for first two dimensions of batch2",
)
ERROR = "RuntimeError: Expected hidden[0] size (1, 5, 32), got [1, 16, 32]"
BAD = """
import torch
from torch import nn
def train(data, batch_size=16):
    rnn = nn.GRU(8, 32, batch_first=True)
    h0 = torch.zeros(1, batch_size, 32)  # expect
    for x, y in torch.utils.data.DataLoader(data, batch_size=batch_size):
        out, _ = rnn(x, h0)  # fails
"""
GOOD = """
import torch
from torch import nn
def train(data, batch_size=16):
    rnn = nn.GRU(8, 32, batch_first=True)
    for x, y in torch.utils.data.DataLoader(data, batch_size=batch_size, drop_last=True):
        h0 = torch.zeros(1, x.size(0), 32)
        out, _ = rnn(x, h0)  # fails
"""
BATCH = pattern(r"(?:^|[._])(?:batch(?:_?size)?|bs|bsz|n_batch|per_device_\w*batch_size)$", re.IGNORECASE)
FILLED = frozenset(
    [
        "zeros",
        "ones",
        "empty",
        "full",
        "rand",
        "randn",
        "view",
        "reshape",
        "expand",
        "repeat",
        "eye",
        "arange",
        "tensor",
        "new_zeros",
    ]
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, last_is_smaller)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for node, scope in inputs(project, surface):
        for step in back(project, node, scope):
            if _sized_by_batch(project, step):
                yield guess(__name__, step, "this has the size of a full batch", step.chain()[1:4])
                return
    written_size = re.search(r"shape '\[(\d+),", surface.message)
    for call in surface.calls(project):
        sizes = [a.value for a in call.node.args[:1] if isinstance(a, ast.Constant)]
        if written_size is not None and call.name in FILLED and sizes == [int(written_size.group(1))]:
            yield guess(__name__, call, "the size of a full batch is written here as a number")
            return
        if call.name in ("view", "reshape", "expand", "repeat") and any(_names_batch(a) for a in call.node.args):
            yield guess(__name__, call, "this has the size of a full batch")
            return


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in loaders(project, surface):
        if not is_true(call.argument("drop_last")):
            yield guess(__name__, call, "the loader keeps its incomplete last batch")
            return


def _names_batch(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Name | ast.Attribute) and BATCH.search(written(part)) for part in ast.walk(node))


def _sized_by_batch(project: Project, step: Step) -> bool:
    node = step.node
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    if name in ("DataLoader", "range", "main", "TrainingArguments") or not any(_names_batch(a) for a in node.args):
        return False
    makes = name in FILLED or re.search(r"init|state|hidden|mask|buffer|zero|noise|label", name, re.IGNORECASE)
    return bool(makes) and not (name in FILLED and _local_size(project, node, step))


def _local_size(project: Project, node: ast.Call, step: Step) -> bool:
    """True if the size is read from the batch at hand (``batch = x.shape[0]`` inside the loop)."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and BATCH.search(part.id):
            for binding in project.lookup(part.id, step.scope):
                text = written(binding.value)
                if ".shape" in text or ".size(" in text or "len(" in text:
                    return bool(loops(project, binding.node, binding.scope)) or step.scope.name == "forward"
    return False
