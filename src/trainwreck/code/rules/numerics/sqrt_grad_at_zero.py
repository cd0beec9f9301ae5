"""The gradient of a square root at zero.

What: ``sqrt`` of something that is exactly zero for some elements: a difference of a thing with itself,
a squared distance without an epsilon.
Why it matters: the value is fine, the gradient is infinite, times zero NaN.
When it is fine: with ``(x + eps).sqrt()``, ``clamp(min=eps)``, outside the graph; ``norm``, whose gradient at zero
torch sets to zero (2.13, every order but the nuclear one).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import bound_to
from trainwreck.code.order import training_steps, under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.equal_pairs import begins_alike, meets_itself
from trainwreck.code.rehearsal.questions.numerics import sqrt_at_zero
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
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
def distances(e):
    square = e.pow(2).sum(1)
    gaps = square[:, None] + square[None] - 2 * e @ e.t()
    gaps = gaps.clamp(min=0)
    return torch.sqrt(gaps)  # expect
def squared(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(-1)
def uniformity(z):
    return squared(z, z).sqrt().mean()  # expect
"""
GOOD = """
def lengths(pred):
    return (pred.unsqueeze(0) - pred.unsqueeze(1)).norm(dim=-1).mean()
def spread(pred, other):
    gaps = ((pred.unsqueeze(0) - pred.unsqueeze(1)).pow(2) + 1e-8).sqrt()
    return gaps.mean() + (pred - other).pow(2).sqrt().mean()
def histogram(points, edges):
    gaps = (points.unsqueeze(0) - points.unsqueeze(1)).pow(2).sum(-1).sqrt()
    near = (points.unsqueeze(0) - points.unsqueeze(1)).pow(2).sum(-1).sqrt().topk(3).indices
    return torch.bucketize(gaps, edges), near
def distances(e, other):
    square = e.pow(2).sum(1)
    gaps = (square[:, None] + square[None] - 2 * e @ e.t()).clamp(min=0)
    same = gaps.eq(0).float()
    cross = (square[:, None] + other.pow(2).sum(1)[None] - 2 * e @ other.t()).clamp(min=0)
    return torch.sqrt(gaps + same * 1e-12) * (1 - same) + torch.sqrt(cross)
@torch.no_grad()
def nearest(e):
    square = e.pow(2).sum(1)
    return torch.sqrt((square[:, None] + square[None] - 2 * e @ e.t()).clamp(min=0))
def apart(e):
    gaps = (e[:, None] - e[None]).pow(2).sum(-1)
    upper = gaps[torch.triu(torch.ones_like(gaps), 1) > 0]
    return upper.sqrt().mean()
"""
_GAP = r"\(\w[\w.\[\]]* - \w[\w.\[\]]*\)\s*(?:\*\* ?2|\.pow\(2\)|\.square\(\))"
SQUARED_GAP = pattern(rf"(?s){_GAP}.*\bsum\b|\bsum\b.*{_GAP}")
CHOOSE = frozenset(["bucketize", "argmin", "argmax", "argsort", "searchsorted", "histc", "linear_sum_assignment"])
KEEPS = frozenset(["clamp", "clamp_min", "clamp_", "relu", "abs", "contiguous", "float", "t"])
AT_ZERO = pattern(r"clamp_?\((?:min=)?0(?:\.0)?\)|clamp_min_?\(0(?:\.0)?\)")
"""A bound at zero keeps the zeros."""
TURNED = pattern(r"\.(?:t\(\)|T|mT|transpose\([^()]*\))$")
MAX_BEHIND = 6
"""Assignments that are followed back from the root."""
SAFE = pattern(r"eps|1e-\d|fill_diagonal|masked_fill|triu|tril|eye\(|clamp|clip|maximum|detach|no_grad")


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    certain = [e for e in found if e.cls == "direct"]
    if not certain:
        certain = list({e.where.line: e for e in _rehearsed(project)}.values())
        yield from certain
    lines = {e.where.line for e in certain}
    yield from (e for e in found if e in certain or e.where.line not in lines)


def _rehearsed(project: Project) -> Iterator[Evidence]:
    for question in (sqrt_at_zero, meets_itself, begins_alike):
        yield from answers(__name__, project, question)


def _written(project: Project) -> Iterator[Evidence]:
    """Certain where all pairs of one thing are compared: the diagonal is zero. A distance of two things is only a
    suspicion, of use where a run shows NaN gradients."""
    for call in _roots(project):
        inner = _inner(call)
        behind = list(_behind(inner, call.scope)) if inner is not None else []
        pairs = next((p for p in map(_pairs, behind) if p), None) or _matched(project, inner, call.scope)
        if (
            pairs is not None
            and not any(SAFE.search(AT_ZERO.sub("", written(part))) for part in (call.node, *behind))
            and not under_no_grad(project, call.node, call.scope)
            and call.scope.name != "backward"  # a gradient written by hand has none of its own
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
    for call in project.calls("sqrt", "rsqrt"):
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


def _pairs(node: ast.expr, alike: set[str] | None = None) -> str | None:
    """The name whose elements are compared with one another in ``node``; ``alike``: two names of one thing."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub):
            left, right = _base(part.left), _base(part.right)
            if left and written(part.left) != written(part.right) and (left == right or {left, right} == alike):
                return left
            gram = _gram(part.right, alike)
            if gram and isinstance(part.left, ast.BinOp) and isinstance(part.left.op, ast.Add):
                return gram
    return None


def _gram(node: ast.expr, alike: set[str] | None) -> str:
    """The name ``x`` of ``2 * x @ x.t()``, the last part of an expanded squared distance."""
    doubled = False
    for part in ast.walk(node):
        doubled |= isinstance(part, ast.Constant) and part.value in (2, 2.0)
    for part in ast.walk(node):
        match part:
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                pass
            case ast.Call(func=func, args=[left, right]) if last_name(func) in ("mm", "matmul"):
                pass
            case ast.Call(func=ast.Attribute(value=left, attr="mm" | "matmul"), args=[right]):
                pass
            case _:
                continue
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
            left = left.right
        one, other = written(left), TURNED.sub("", written(right))
        if doubled and other != written(right) and (one == other or {one, other} == alike):
            return one
    return ""


def _behind(node: ast.expr, scope: Scope) -> Iterator[ast.expr]:
    """``node`` and what the names in it stand for in this function, each once."""
    seen = {node}
    level = [node]
    for _ in range(MAX_BEHIND):
        yield from level
        values = [
            binding.value
            for outer in level
            for part in ast.walk(outer)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
            for binding in scope.bindings.get(part.id, ())
            if binding.kind in ("assign", "augment") and binding.value is not None and binding.line < outer.lineno
        ]
        level = [value for value in dict.fromkeys(values) if value not in seen]
        seen.update(level)


def _matched(project: Project, node: ast.expr | None, scope: Scope, depth: int = 0) -> str | None:
    """The name that is both sides of a call of a function of the project that compares all pairs of two things."""
    if isinstance(node, ast.Name) and depth < 4:
        made = [b for b in scope.bindings.get(node.id, ()) if b.kind == "assign" and b.value is not None]
        return _matched(project, made[0].value, scope, depth + 1) if len(made) == 1 and not made[0].path else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and last_name(node.func) in KEEPS:
        return _matched(project, node.func.value, scope, depth + 1) if depth < 4 else None
    if not isinstance(node, ast.Call):
        return None
    target = project.resolve(node.func, scope)
    if target is None or target.kind != "function" or len(target.returns) != 1 or target.returns[0] is None:
        return None
    behind = list(_behind(target.returns[0], target))
    if any(SAFE.search(AT_ZERO.sub("", written(part))) for part in behind):
        return None
    own = next((p for p in map(_pairs, behind) if p), None)
    if own is not None:
        return own
    given = [written(a) for a in node.args]
    if len(given) >= 2 and given[0] == given[1] and len(target.positional) >= 2:
        first, second = [p for p in target.positional if p != "self"][:2]
        if any(_pairs(part, {first, second}) for part in behind):
            return given[0]
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
