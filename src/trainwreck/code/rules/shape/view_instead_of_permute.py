"""A reshape where axes should be swapped.

What: the sizes of ``x.view(...)`` are those of ``x`` in another order (``B, T, C = x.shape; x.view(B, C, T)``), also
after a merge or a split of axes (``logits.reshape(-1, C)`` of (B, C, T), heads that are merged without a transpose).
Why it matters: the numbers are read in their old order: each row holds pieces of several; nothing fails.
When it is fine: never for a permutation of unequal axes; use ``permute`` or ``transpose``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    later,
)
from trainwreck.code.order import (
    position,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.carried import strided_record
from trainwreck.code.rehearsal.questions.patches import rows_as_squares
from trainwreck.code.rehearsal.questions.reshapes import columns_as_rows, mixed
from trainwreck.code.rehearsal.questions.strips import strips_for_patches
from trainwreck.code.rehearsal.questions.unpacked_sizes import inner_axis_last
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
def forward(x):
    B, T, C = x.shape
    return x.view(B, C, T)  # expect
""",
    """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        b, c, h, w = x.size()
        y = x.reshape(b, h, w, c)  # expect
        return y
""",
    """
def f(images):
    n, h, w, c = images.shape
    return images.reshape((n, c, h, w))  # expect
""",
)
GOOD = """
def forward(x, y):
    B, T, C = x.shape
    a = x.permute(0, 2, 1)
    b = x.view(B, T, C)
    c = x.view(B * T, C)
    d = x.transpose(1, 2).reshape(B, C, T)
    x = x.permute(0, 2, 1)
    e = x.reshape(B, C, T)
    f = y.view(B, C, T)
    return a, b, c, d, e, f
"""


def find(project: Project) -> Iterator[Evidence]:
    asked = (mixed, columns_as_rows, rows_as_squares, strided_record, inner_axis_last, strips_for_patches)
    yield from further(__name__, project, _written(project), *asked)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("view", "reshape"):
        base = call.receiver
        if not isinstance(base, ast.Name):
            continue
        sizes = call.node.args
        if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
            sizes = sizes[0].elts
        wanted = [s.id for s in sizes if isinstance(s, ast.Name)]
        if len(wanted) != len(sizes) or len(wanted) < 3 or len(set(wanted)) != len(wanted):
            continue
        unpacked = _shape(project, call, base.id)
        if unpacked is None or sorted(unpacked[0]) != sorted(wanted) or unpacked[0] == wanted:
            continue
        names_, node = unpacked
        own = project.statement(call.node, call.scope)
        bound = [b.node for b in project.lookup(base.id, call.scope) if b.node is not own]
        if any(later(b, node) and not later(b, call.node) for b in bound):
            continue
        if any(len([b for b in project.lookup(n, call.scope) if b.scope is call.scope]) != 1 for n in wanted):
            continue
        text = f"({', '.join(names_)}) is read as ({', '.join(wanted)}): this does not swap axes, it mixes the values"
        yield sighting(__name__, call, text, proof=[(call.scope.module.path, position(node)[0], written(node)[:80])])


def _shape(project: Project, call: Call, name: str) -> tuple[list[str], ast.AST] | None:
    """The names that the shape of ``name`` was unpacked into last before ``call``."""
    found = None
    for node in project.within(call.scope, ast.Assign):
        assert isinstance(node, ast.Assign)
        if later(node, call.node) or written(node.value) not in (f"{name}.shape", f"{name}.size()"):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
            found = ([e.id for e in target.elts if isinstance(e, ast.Name)], node)
    return found
