"""The gradient of a square root at zero.

What: ``sqrt`` (or a norm) of something that is exactly zero for some elements: a difference of a thing with itself,
a squared distance without an epsilon.
Why it matters: the value is fine, the gradient is infinite, times zero NaN.
When it is fine: with ``(x + eps).sqrt()``, ``clamp(min=eps)``, or outside the graph.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import bound_to
from trainwreck.code.order import training_steps, under_no_grad
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import modules
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
def spread(pred):
    gaps = (pred.unsqueeze(0) - pred.unsqueeze(1)).pow(2).sqrt()  # expect
    return gaps.mean()
def train(model, loader, opt):
    for x, y in loader:
        loss = -spread(model(x))
        loss.backward()
"""
GOOD = """
def spread(pred, other):
    gaps = ((pred.unsqueeze(0) - pred.unsqueeze(1)).pow(2) + 1e-8).sqrt()
    return gaps.mean() + (pred - other).pow(2).sqrt().mean()
def histogram(points, edges):
    gaps = (points.unsqueeze(0) - points.unsqueeze(1)).pow(2).sum(-1).sqrt()
    near = (points.unsqueeze(0) - points.unsqueeze(1)).pow(2).sum(-1).sqrt().topk(3).indices
    return torch.bucketize(gaps, edges), near
"""
_GAP = r"\(\w[\w.\[\]]* - \w[\w.\[\]]*\)\s*(?:\*\* ?2|\.pow\(2\)|\.square\(\))"
SQUARED_GAP = re.compile(rf"(?s){_GAP}.*\bsum\b|\bsum\b.*{_GAP}")
CHOOSE = frozenset(["bucketize", "argmin", "argmax", "argsort", "searchsorted", "histc", "linear_sum_assignment"])
SAFE = re.compile(r"eps|1e-\d|clamp|clip|maximum|detach|no_grad")


def find(project: Project) -> Iterator[Evidence]:
    """Certain where all pairs of one thing are compared: the diagonal is zero. A distance of two things is only a
    suspicion, of use where a run shows NaN gradients."""
    for call in _roots(project):
        inner = _inner(call)
        pairs = _pairs(inner) if inner is not None else None
        if (
            pairs is not None
            and not SAFE.search(written(call.node))
            and not under_no_grad(project, call.node, call.scope)
            and not _counted(project, call)
        ):
            yield sighting(
                __name__, call, f"each {pairs} is compared with itself too, and the root of 0 has no gradient"
            )
        elif (
            pairs is None
            and inner is not None
            and last_name(call.node.func) == "sqrt"
            and SQUARED_GAP.search(written(inner))
            and not SAFE.search(written(call.node))
            and not under_no_grad(project, call.node, call.scope)
        ):
            text = "the root of a sum of squared differences has no gradient where both sides are equal"
            yield sighting(__name__, call, text, cls="inferred")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    trained = [t.scope for t in training_steps(project)]
    methods = [m for c in modules(project) for m in c.children]
    ranked = sorted(_roots(project), key=lambda c: (c.scope not in trained, c.scope not in methods))
    for call in ranked:
        text = written(call.node)
        if not SAFE.search(text) and not text.startswith("math."):
            yield guess(__name__, call, "nothing keeps what is under the root from being zero")
            return


def _roots(project: Project) -> Iterator[Call]:
    for call in project.calls("sqrt", "norm", "rsqrt"):
        if not project.called(call).startswith(("math.", "numpy", "np.")):
            yield call


def _inner(call: Call) -> ast.expr | None:
    if (
        call.node.args
        and call.receiver is not None
        and isinstance(call.receiver, ast.Name)
        and call.receiver.id == "torch"
    ):
        return call.node.args[0]
    return call.receiver


def _pairs(node: ast.expr) -> str | None:
    """The name whose elements are compared with one another in ``node``."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub):
            left, right = _base(part.left), _base(part.right)
            if left and left == right and written(part.left) != written(part.right):
                return left
    return None


def _base(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and last_name(node.func) == "unsqueeze" and isinstance(node.func, ast.Attribute):
        return written(node.func.value)
    if isinstance(node, ast.Subscript) and "None" in written(node.slice):
        return written(node.value)
    return ""


def _counted(project: Project, call: Call) -> bool:
    """True if the distances only choose or count something: no gradient goes back through them."""
    name = bound_to(project, call)
    uses = [n for n in project.within(call.scope, ast.Name) if isinstance(n, ast.Name) and n.id == name]
    read: list[ast.AST] = [n for n in uses if isinstance(n.ctx, ast.Load)] if name else [call.node]
    return bool(read) and all(_chooses(project, node, call) for node in read)


def _chooses(project: Project, node: ast.AST, call: Call) -> bool:
    statement = project.statement(node, call.scope)
    for above in project.ancestors(node, call.scope):
        if isinstance(above, ast.Compare) or (isinstance(above, ast.Attribute) and above.attr == "indices"):
            return True
        if isinstance(above, ast.Call) and last_name(above.func) in CHOOSE:
            return True
        if above is statement:
            break
    return False
