"""The backward of a custom autograd function is not the derivative of its forward.

What: ``backward(ctx, grad_output)`` returns something that does not depend on ``grad_output``; or, worked out for small
random tensors, it says something else than a small step does to ``forward`` (a missing factor, a sign, another tensor);
or features that are to hide from a head where they come from get its gradient as it is, not reversed.
Why it matters: the chain rule is broken: what comes before the function is trained in a wrong direction.
When it is fine: where every returned gradient is None, for a function that is the loss itself by design, for reversed
or scaled gradients of an unchanged input, and for stand-ins of flat functions (rounding, spikes).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.chunks import first_chunk_again
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.derivatives import not_the_derivative
from trainwreck.code.rehearsal.questions.reversing import not_reversed
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

WRONG = """
import torch
from torch import nn
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        s = torch.sigmoid(scale * x)
        ctx.save_for_backward(x, s)
        ctx.scale = scale
        return x * s
    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + x * s * (1 - s)), None  # expect
net, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for step in range(100):
    loss = head(Swish.apply(net(torch.randn(16, 4)), 2.0)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    WRONG,
    """
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x  # expect
""",
    """
from torch.autograd import Function
class Clip(Function):
    @staticmethod
    def forward(ctx, x, bound):
        ctx.mask = x.abs() < bound
        return x.clamp(-bound, bound)
    @staticmethod
    def backward(ctx, g):
        return ctx.mask.float(), None  # expect
""",
    """
import torch
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        slope = s * (1 + x * (1 - s))
        return slope  # expect
""",
)
GOOD = (
    """
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = 2 * x
        return slope * grad_output
class Reverse(torch.autograd.Function):
    @staticmethod
    def backward(ctx, *grads):
        return tuple(-g for g in grads)
class Stop(torch.autograd.Function):
    @staticmethod
    def backward(ctx, g):
        return None, None
class Later(torch.autograd.Function):
    @staticmethod
    def backward(ctx, g):
        return kernel(ctx)
class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.g = torch.sign(x)
        return x.abs().sum()
    @staticmethod
    def backward(ctx, g):
        return ctx.g
""",
    WRONG.replace("x * s * (1 - s)", "ctx.scale * x * s * (1 - s)"),
)


def find(project: Project) -> Iterator[Evidence]:
    found = [*_without_gradient(project), *_by_chunks(project)]
    yield from further(__name__, project, found, not_the_derivative, not_reversed)


def _by_chunks(project: Project) -> Iterator[Evidence]:
    """A function that works chunk by chunk takes one array where the chunk lies, and the first of it in every turn."""
    for owner in project.classes:
        if not project.is_a(owner, "Function"):
            continue
        for method in (owner.method("forward"), owner.method("backward")):
            for again in first_chunk_again(project, method) if method is not None else ():
                text = f"every chunk is given the first of {written(again.node.value)}, not those that lie beside it"
                yield sighting(__name__, (again.node, again.scope), text)


def _without_gradient(project: Project) -> Iterator[Evidence]:
    for owner in project.classes:
        backward = owner.method("backward")
        if backward is None or not project.is_a(owner, "Function") or not _element_wise(owner.method("forward")):
            continue
        params = backward.params
        args = backward.node.args if isinstance(backward.node, ast.FunctionDef) else None
        if len(params) != 2 or args is None or args.vararg is not None:
            continue
        given = params[1]
        read = {n.id for n in ast.walk(backward.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        values = [v for v in backward.returns if v is not None and not _nothing(v)]
        if values and given not in read:
            place = project.statement(values[-1], backward)
            yield sighting(__name__, (place, backward), f"what is returned does not depend on {given}")


def _nothing(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(p, ast.Constant) and p.value is None for p in parts)


def _element_wise(forward: Scope | None) -> bool:
    """False where the forward reduces to a number (a loss, whose upstream gradient is one) or is out of sight."""
    if forward is None or not forward.returns:
        return False
    text = ast.unparse(forward.node)
    return not any(f".{name}(" in text for name in ("sum", "mean", "norm"))
