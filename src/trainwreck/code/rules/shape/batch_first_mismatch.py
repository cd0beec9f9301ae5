"""The output of a recurrent layer is read batch-first, but the layer is time-first.

What: an LSTM, GRU or RNN is built without ``batch_first=True`` and the last step is taken as ``out[:, -1]``.
Why it matters: that is the last sample of the batch, not the last time step; batch and time are mixed up silently.
When it is fine: where input and output are swapped with ``transpose(0, 1)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    complete,
    is_torch,
    only,
    option,
)
from trainwreck.code.order import (
    position,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.flattening import read_in_two_orders
from trainwreck.code.rehearsal.questions.layer_order import one_sample_taken, other_order
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import modules
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 32)  # expect
        self.head = nn.Linear(32, 1)
    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])
""",
    """
import torch
class Net(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = torch.nn.GRU(input_size=4, hidden_size=hidden, num_layers=2)  # expect
    def forward(self, x):
        y, h = self.gru(x)
        last = y[:, -1, :]
        return last
""",
)
GOOD = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.LSTM(8, 32, batch_first=True)
        self.b = nn.LSTM(8, 32)
        self.c = nn.LSTM(8, 32)
        self.d = nn.GRU(8, 32, 1, True, True)
    def forward(self, x):
        out, _ = self.a(x)
        y, _ = self.b(x.transpose(0, 1))
        z, _ = self.c(x)
        w, _ = self.d(x)
        y = y.transpose(0, 1)
        return out[:, -1], y[:, -1], z[-1], w[:, -1]
"""
SWAPS = ("transpose", "permute", "movedim", "swapaxes", "rearrange", "pack_padded", ".T", ".t()", "unsqueeze")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), other_order, one_sample_taken, read_in_two_orders)


def _written(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        forward = owner.method("forward")
        if forward is None:
            continue
        for name, bindings in owner.attributes.items():
            layer = next(
                (
                    b
                    for b in bindings
                    if isinstance(b.value, ast.Call) and last_name(b.value.func) in ("LSTM", "GRU", "RNN")
                ),
                None,
            )
            if layer is None or len(bindings) != 1 or not isinstance(layer.value, ast.Call):
                continue
            call = Call(layer.value, layer.scope)
            if not is_torch(project, call) or not complete(project, call) or len(call.node.args) > 4:
                continue
            if only(project, option(project, call, "batch_first", 4)) not in (None, False):
                continue
            read = _read_batch_first(project, forward, name)
            if read is not None:
                text = "this layer is time-first (no batch_first=True), and its output is read batch-first"
                yield sighting(
                    __name__, call, text, proof=[(forward.module.path, position(read)[0], written(read)[:80])]
                )


def _read_batch_first(project: Project, forward: Scope, name: str) -> ast.AST | None:
    for node in project.within(forward, ast.Assign):
        assert isinstance(node, ast.Assign)
        value = node.value
        if not isinstance(value, ast.Call) or written(value.func) != f"self.{name}" or not value.args:
            continue
        target = node.targets[0]
        out = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
        if not isinstance(out, ast.Name) or any(s in written(forward.node) for s in SWAPS):
            continue
        for inner in project.within(forward, ast.Subscript):
            assert isinstance(inner, ast.Subscript)
            if written(inner.value) == out.id and written(inner.slice) in (
                "(:, -1)",
                ":, -1",
                "(:, -1, :)",
                ":, -1, :",
            ):
                return inner
    return None
