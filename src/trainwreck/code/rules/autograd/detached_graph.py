"""The loss is cut off from the graph before ``backward()``.

What: the loss goes through ``.item()``, ``.detach()``, ``.data``, ``torch.tensor(...)`` or numpy and is wrapped
again.
Why it matters: ``backward()`` fails, or with ``requires_grad=True`` set by hand runs and changes nothing.
When it is fine: for values that are only logged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import Step, back
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"does not require grad and does not have a grad_fn", r"no attribute 'backward'")
ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
BAD = (
    """
import torch
def train(model, loader, opt, criterion):
    for x, y in loader:
        value = criterion(model(x), y)
        loss = torch.tensor(value.item(), requires_grad=True)  # expect
        loss.backward()
        opt.step()
""",
    """
def train(model, loader, opt, criterion):
    for x, y in loader:
        out = model(x).detach()  # expect
        loss = criterion(out, y)
        loss.backward()  # fails
        opt.step()
""",
)
GOOD = """
import torch
def train(model, teacher, loader, opt, criterion):
    for x, y in loader:
        target = teacher(x).detach()
        loss = criterion(model(x), target) + criterion(model(x), torch.tensor(0.5))
        loss.backward()
        opt.step()
        log = loss.item()
"""
CUTS = ("detach", "item", "numpy", "tolist", "float", "detach_")
WRAPS = ("tensor", "as_tensor", "from_numpy", "Variable", "FloatTensor", "Tensor")


def find(project: Project) -> Iterator[Evidence]:
    """``backward()`` of something that was wrapped anew from plain numbers: certain."""
    for call in project.calls("backward"):
        receiver = call.receiver
        if receiver is None:
            continue
        for step in _spine(project, call):
            node = step.node
            if (
                isinstance(node, ast.Call)
                and last_name(node.func) in WRAPS
                and node.args
                and _computed(project, node, step)
            ):
                yield sighting(__name__, step, "the loss is made anew from a plain number here: nothing flows back")
                break
            if isinstance(node, ast.Call) and last_name(node.func) in ("detach", "item") and not node.args:
                yield sighting(__name__, step, "the loss is cut off from the graph here")
                break


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in surface.calls(project):
        if call.name != "backward" or call.receiver is None:
            continue
        for step in back(project, call.receiver, call.scope):
            node = step.node
            cut = isinstance(node, ast.Call) and last_name(node.func) in (*CUTS, *WRAPS) and project.calls_by_name
            if (cut and _computed(project, node, step)) or (isinstance(node, ast.Attribute) and node.attr == "data"):
                yield guess(__name__, step, "the values leave the graph here", step.chain()[1:3])
                return


def _spine(project: Project, call: Call) -> Iterator[Step]:
    """The loss itself on its way back: through names only, and to the first thing that is computed."""
    assert call.receiver is not None
    for step in back(project, call.receiver, call.scope):
        if all(isinstance(s.node, ast.Name) for s in step.chain()[1:]) and step.scope is call.scope:
            bindings = project.bindings(step.previous.node, call.scope) if step.previous is not None else []
            if len(bindings) <= 1:
                yield step


def _computed(project: Project, node: ast.AST, step: Step) -> bool:
    """True if what is cut off was computed by a model or a loss (not a constant or data)."""
    if not isinstance(node, ast.Call):
        return False
    sources = (
        [node.func.value] if isinstance(node.func, ast.Attribute) and last_name(node.func) in CUTS else node.args[:1]
    )
    for source in sources:
        if isinstance(source, ast.Constant):
            return False
        for below in back(project, source, step.scope):
            text = written(below.node)
            if isinstance(below.node, ast.Call) and any(
                w in text.lower() for w in ("model(", "net(", "loss", "criterion(")
            ):
                return True
            if below.depth > 6:
                break
    return False
