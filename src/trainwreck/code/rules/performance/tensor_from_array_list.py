"""A tensor is made from a list of arrays.

What: ``torch.tensor([...])`` of a list that holds numpy arrays, in the data set or the training loop.
Why it matters: torch reads the arrays number by number; it warns that this is extremely slow. Measured on torch 2.13:
three times as long for 2,000 arrays of 100 numbers.
When it is fine: for a handful of numbers; otherwise ``torch.from_numpy(np.stack(rows))``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import numpy as np, torch
rows = [np.random.rand(100) for _ in range(2000)]
x = torch.tensor(rows)  # expect
""",
    """
import numpy as np
import torch
def collate(samples):
    kept = []
    for s in samples:
        kept.append(np.asarray(s))
    return torch.FloatTensor(kept)  # expect
""",
    """
import numpy as np, torch
x = torch.as_tensor([np.load(p) for p in paths], dtype=torch.float32)  # expect
""",
)
GOOD = """
import numpy as np, torch
rows = [np.random.rand(100) for _ in range(2000)]
a = torch.tensor(np.stack(rows))
b = torch.tensor([1.0, 2.0])
c = torch.tensor([float(np.mean(r)) for r in rows])
d = torch.tensor([np.mean(r) for r in rows])
e = torch.stack([torch.from_numpy(r) for r in rows])
"""
ARRAYS = frozenset(
    [
        "array",
        "asarray",
        "zeros",
        "ones",
        "empty",
        "full",
        "rand",
        "randn",
        "normal",
        "uniform",
        "load",
        "stack",
        "concatenate",
        "arange",
        "linspace",
        "imread",
    ]
)
"""Functions of numpy that give an array (not a number), for the arguments that are seen."""
MAKES = ("tensor", "as_tensor", "FloatTensor", "LongTensor", "Tensor", "DoubleTensor")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*MAKES):
        if not project.called(call).startswith("torch.") or not call.node.args:
            continue
        held = _elements(project, call.node.args[0], call.scope)
        if held and all(_is_array(project, node, scope) for node, scope in held):
            text = "a list of arrays is read number by number; stack it first"
            yield sighting(__name__, call, text, proof=[Call(held[0][0], held[0][1])])


def _elements(project: Project, node: ast.expr, scope: Scope) -> list[tuple[ast.Call, Scope]]:
    """The calls that make the elements of a list; empty where it holds anything else."""
    if isinstance(node, ast.ListComp):
        return [(node.elt, scope)] if isinstance(node.elt, ast.Call) else []
    if isinstance(node, ast.List):
        return [(e, scope) for e in node.elts if isinstance(e, ast.Call)] if node.elts else []
    if not isinstance(node, ast.Name):
        return []
    bindings = project.lookup(node.id, scope)
    first = [b for b in bindings if b.kind == "assign"]
    rest = [b for b in bindings if b.kind != "assign"]
    if len(first) != 1 or first[0].value is None or first[0].path or any(b.kind != "append" for b in rest):
        return []
    if isinstance(first[0].value, ast.List) and not first[0].value.elts:
        added = [(b.value, b.scope) for b in rest if isinstance(b.value, ast.Call) and not b.path]
        return [(v, s) for v, s in added if isinstance(v, ast.Call)] if len(added) == len(rest) else []
    return [] if rest or isinstance(first[0].value, ast.Name) else _elements(project, first[0].value, first[0].scope)


def _is_array(project: Project, node: ast.Call, scope: Scope) -> bool:
    call = Call(node, scope)
    return project.called(call).split(".", 1)[0] == "numpy" and call.name in ARRAYS and bool(node.args)
