"""Similarities are multiplied by the temperature.

What: ``sim * tau`` where a contrastive loss divides by it, or ``sim / x`` where x is 1 / tau
(``log_scale.exp()``).
Why it matters: with a small temperature all logits are nearly equal; the loss stays near ln of the batch.
When it is fine: where the parameter is an inverse temperature (``logit_scale``).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from itertools import islice

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import source, text_of
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.similarities import scaled, without_exponential
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def info_nce(z, tau=0.1):
    sim = z @ z.t() * tau  # expect
    return F.cross_entropy(sim, target)
""",
    """
import torch
import torch.nn.functional as F
class NCE(torch.nn.Module):
    def __init__(self, temperature=0.07):
        super().__init__()
        self.t = temperature
    def forward(self, a, b):
        sim = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t()
        return F.cross_entropy(sim * self.t, torch.arange(len(a)))  # expect
""",
    """
import torch
import torch.nn.functional as F
def info_nce(a, b, tau=20.0):  # expect
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    logits = a @ b.T / tau
    return F.cross_entropy(logits, torch.arange(len(a)))
""",
    """
import math
import torch
import torch.nn.functional as F
from torch import nn
class Dual(nn.Module):
    def __init__(self, start=0.05):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(math.log(1 / start)))
    def forward(self, a, b):
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        return a.mm(b.t()).div(self.gain.exp())  # expect
def loss(logits):
    return F.cross_entropy(logits, torch.arange(len(logits)))
""",
)
GOOD = """
import torch.nn.functional as F
def info_nce(z, logit_scale, tau=0.1):
    sim = z @ z.t() / tau
    other = z @ z.t() * logit_scale
    soft = F.kl_div(sim, other) * tau * tau
    return F.cross_entropy(sim + other, target) + soft
class Head(nn.Module):
    def logits(self, a, b, temperature):
        return a @ b.t() * temperature
    def forward(self, a, b):
        self.scale.data.clamp_(0, 4)
        return F.cross_entropy(self.logits(a, b, temperature=self.logit_scale.exp()), target)
class Dual(nn.Module):
    def __init__(self, width=64):
        self.log_tau = nn.Parameter(torch.tensor(math.log(0.07)))
        self.log_gain = nn.Parameter(torch.ones([]) * math.log(1 / 0.07))
        self.spread = width**0.5
    def forward(self, a, b):
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        sim = a @ b.t()
        target = torch.arange(len(a))
        other = F.cross_entropy(self.log_gain.exp() * sim, target)
        return F.cross_entropy(sim / self.log_tau.exp(), target) + other + (a @ a.t() / self.spread).mean()
class Mixed(nn.Module):
    def __init__(self, width=64):
        self.weights = nn.Parameter(torch.zeros(width, 4))
        self.small = nn.Parameter(torch.ones(()) * 1e-2)
    def forward(self, streams):
        shares = F.normalize(streams, dim=-1) @ self.weights
        mixed = shares * self.small
        return mixed + torch.arange(4)
def train(net, x, y):
    return F.cross_entropy(net(x).exp(), y)
"""
TEMPERATURE = pattern(r"(^|[._])(tau|temp|temperature)$", re.IGNORECASE)
SIMILARITY = pattern(r"@|matmul|\bmm\b|einsum|cosine_similarity")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), scaled, without_exponential)


def _written(project: Project) -> Iterator[Evidence]:
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _scaled(project, node, scope):
                text = "similarities are multiplied by the temperature, which a contrastive loss divides by"
                yield sighting(__name__, (node, scope), text)
    yield from _out_of_range(project)
    yield from _turned(project)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if isinstance(node, ast.BinOp) and TEMPERATURE.search(written(node.right)):
                yield guess(__name__, (node, scope), "the temperature is applied here")
                return


def _is_temperature(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for what is called a temperature, or ``t`` with a value below 1."""
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return False
    text = written(node)
    if TEMPERATURE.search(text):
        return True
    if not re.search(r"(^|[._])[tT]$", text):
        return False
    low, high = interval(project, node, scope)
    return low == high and 0 < low < 1


def _similarity(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for a product of embeddings, here or behind a name."""
    if SIMILARITY.search(written(node)) or _returned(project, node, scope) is not None:
        return True
    return isinstance(node, ast.Name) and any(
        b.value is not None and b.kind == "assign" and SIMILARITY.search(written(b.value))
        for b in scope.bindings.get(node.id, ())
    )


HOT, COLD = 2.0, 0.004
"""Published temperatures lie between 0.01 (the clip of CLIP, arXiv:2103.00020) and 1 (arXiv:2002.05709, table 5)."""


def _out_of_range(project: Project) -> Iterator[Evidence]:
    """Similarities of normalised embeddings divided by a temperature far outside of what works."""
    if not re.search(r"normalize\(|cosine_similarity", source(project)) or "cross_entropy" not in source(project):
        return
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            if not TEMPERATURE.search(written(node.right)) or not _similarity(project, node.left, scope):
                continue
            if not re.search(r"arange|eye\(|diag", scope.module.text):
                continue
            low, high = interval(project, node.right, scope)
            if low == high and (low >= HOT or 0 < low <= COLD):
                text = f"a temperature of {low:g} makes the loss {'flat' if low >= HOT else 'a hard maximum'}"
                yield sighting(
                    __name__,
                    origin(project, node.right, scope),
                    text,
                    proof=[(scope.module.path, node.lineno, written(node)[:80])],
                )


def _turned(project: Project) -> Iterator[Evidence]:
    """Similarities scaled by a learned or computed number (``exp`` of a parameter) the wrong way round."""
    text = source(project)
    if not re.search(r"normalize\(|cosine_similarity|\.norm\(", text):
        return
    if not re.search(r"cross_entropy|CrossEntropyLoss|log_softmax|logsumexp", text):
        return
    pairs = {path for path, m in project.program.modules.items() if re.search(r"arange|eye\(|diag", m.text)}
    for scope in project.scopes:
        if scope.module.path not in pairs:
            continue
        if scope.kind == "function" and re.search(r"(?<!log_)softmax\(", text_of(project, scope)):
            continue
        for node, product, factor, divides in _scalings(project, scope):
            text = written(factor)
            if isinstance(factor, ast.Constant) or TEMPERATURE.search(text) or not _similarity(project, product, scope):
                continue
            formula = isinstance(product, ast.BinOp | ast.Call) and _returned(project, product, scope) is None
            if formula and PAIRWISE.search(written(product)) is None:
                continue
            made = scope.bindings.get(product.id, ()) if isinstance(product, ast.Name) else ()
            formulas = [written(b.value) for b in made if b.value is not None and SIMILARITY.search(written(b.value))]
            if formulas and not any(PAIRWISE.search(f) for f in formulas):
                continue  # a product with a matrix of weights
            if not any(_exponential(s.node) for s in islice(back(project, factor, scope), 60)):
                continue
            number = _number(project, factor, scope)
            if number is None or number <= 0:
                continue
            gain = 1 / number if divides else number
            if gain <= 1 / HOT or gain >= 1 / COLD:
                verb = "divided" if divides else "multiplied"
                says = f"similarities are {verb} by {text}, which is {number:.3g}: the loss is "
                yield sighting(__name__, (node, scope), says + ("flat" if gain < 1 else "a hard maximum"))


PAIRWISE = pattern(r"\.t\(\)|\.T\b|\.mT\b|\bmm\(|einsum|cosine_similarity|transpose\(0, 1\)|transpose\(-?1, ")
"""A product of all pairs of a batch."""
SCALES = frozenset(["mul", "div", "mul_", "div_"])
Scaling = tuple[ast.expr, ast.expr, ast.expr, bool]


def _scalings(project: Project, scope: Scope) -> Iterator[Scaling]:
    """Where something is multiplied with or divided by another: the place, both, and True for a division."""
    for node in project.within(scope, ast.BinOp, ast.Call, ast.AugAssign):
        match node:
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                yield node, node.left, node.right, isinstance(node.op, ast.Div)
                if isinstance(node.op, ast.Mult):
                    yield node, node.right, node.left, False
            case ast.AugAssign(op=ast.Mult() | ast.Div()):
                product = ast.copy_location(_load(node.target), node)
                yield node.value, product, node.value, isinstance(node.op, ast.Div)
            case ast.Call(func=ast.Attribute(value=base, attr=name), args=[first, *rest]) if name in SCALES:
                of_torch = written(base) == "torch" and rest
                yield node, first if of_torch else base, rest[0] if of_torch else first, name.startswith("div")


def _load(node: ast.expr) -> ast.expr:
    return ast.Name(node.id, ast.Load()) if isinstance(node, ast.Name) else node


def _returned(project: Project, node: ast.expr, scope: Scope) -> ast.expr | None:
    """What a function of the project returns, where that is a product of all pairs."""
    target = project.resolve(node.func, scope) if isinstance(node, ast.Call) else None
    for value in target.returns if target is not None and target.kind == "function" else ():
        if value is not None and PAIRWISE.search(written(value)):
            return value
    return None


def _exponential(node: ast.expr) -> bool:
    """True for what makes a number a gain of its own: an exponential, a parameter, ``1 / x``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return isinstance(node.left, ast.Constant) and node.left.value == 1
    return isinstance(node, ast.Call) and last_name(node.func) in ("exp", "Parameter")


def _number(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> float | None:
    """The number behind ``node`` at the start of the training, through parameters, tensors, ``exp`` and ``log``."""
    if depth > 10:
        return None
    low, high = interval(project, node, scope)
    if low == high and math.isfinite(low):
        return low
    match node:
        case ast.Name() | ast.Attribute():
            bindings = [b for b in project.bindings(node, scope) if b.kind in ("assign", "param")]
            given: list[tuple[ast.expr, Scope]] = []
            for b in bindings:
                if b.kind == "param":
                    given += project.arguments(b)
                elif b.value is not None and not b.path:
                    given.append((b.value, b.scope))
            found = {_number(project, value, where, depth + 1) for value, where in given}
            return found.pop() if len(found) == 1 else None
        case ast.BinOp(op=ast.Mult() | ast.Div() | ast.Add() | ast.Sub() as op):
            left = _number(project, node.left, scope, depth + 1)
            right = _number(project, node.right, scope, depth + 1)
            if left is None or right is None or (isinstance(op, ast.Div) and not right):
                return None
            match op:
                case ast.Mult():
                    return left * right
                case ast.Div():
                    return left / right
                case ast.Add():
                    return left + right
            return left - right
        case ast.UnaryOp(op=ast.USub()):
            inner = _number(project, node.operand, scope, depth + 1)
            return None if inner is None else -inner
        case ast.Call(func=func):
            return _of_call(project, node, last_name(func), scope, depth)
    return None


def _of_call(project: Project, node: ast.Call, name: str, scope: Scope, depth: int) -> float | None:
    library = isinstance(node.func, ast.Name) or written(node.func).split(".")[0] in ("torch", "math", "np", "nn")
    inner = node.args[0] if node.args and library else node.func.value if isinstance(node.func, ast.Attribute) else None
    if name == "ones":
        return 1.0
    if name == "full" and len(node.args) > 1:
        inner = node.args[1]
    keeps = (
        "Parameter",
        "tensor",
        "as_tensor",
        "float",
        "full",
        "clamp",
        "clip",
        "detach",
        "to",
        "item",
        "FloatTensor",
    )
    if inner is None or name not in (*keeps, "exp", "log"):
        return None
    if isinstance(inner, ast.List) and len(inner.elts) == 1:
        inner = inner.elts[0]
    number = _number(project, inner, scope, depth + 1)
    if number is None or name in keeps:
        return number
    if name == "exp":
        return math.exp(number) if abs(number) < 100 else None
    return math.log(number) if number > 0 else None


def _scaled(project: Project, node: ast.BinOp, scope: Scope) -> bool:
    if not re.search(r"cross_entropy|logsumexp|log_softmax", scope.module.text):
        return False
    for side, other in ((node.right, node.left), (node.left, node.right)):
        if _is_temperature(project, side, scope) and _similarity(project, other, scope):
            # CLIP learns the logarithm of 1 / temperature and multiplies by its exponential
            return not any(_inverse(s.node) for s in islice(back(project, side, scope), 60))
    return False


def _inverse(node: ast.expr) -> bool:
    """True for ``x.exp()``, ``1 / x`` and what is called a scale."""
    match node:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div()):
            return True
        case ast.Call():
            return last_name(node.func) == "exp"
        case ast.Name() | ast.Attribute():
            return "scale" in last_name(node)
    return False
