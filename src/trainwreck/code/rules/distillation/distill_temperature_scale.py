"""The soft loss lacks the square of the temperature.

What: ``kl_div(log_softmax(s / T), softmax(t / T))`` with a literal T other than 1 that is never multiplied by ``T *
T``.
Why it matters: gradients of the soft targets shrink with 1/T²: the teacher counts far less than the weight says.
When it is fine: where the weight already accounts for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    only,
    source,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import call_ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
T = 4.0
def distill(s, t, y):
    soft = F.kl_div(F.log_softmax(s / T, -1), F.softmax(t / T, -1), reduction="batchmean")  # expect
    return 0.5 * soft + 0.5 * F.cross_entropy(s, y)
""",
    """
import torch.nn.functional as F
def distill(s, t, temperature=3.0):
    p = F.log_softmax(s / temperature, dim=1)
    q = F.softmax(t / temperature, dim=1)
    return F.kl_div(p, q, reduction="batchmean")  # expect
""",
)
GOOD = """
import torch.nn.functional as F
T = 4.0
def distill(s, t, y):
    soft = F.kl_div(F.log_softmax(s / T, -1), F.softmax(t / T, -1), reduction="batchmean") * T * T
    hard = F.kl_div(F.log_softmax(s, -1), F.softmax(t, -1), reduction="batchmean")
    return soft + hard
def other(s, t, tau):
    return F.kl_div(F.log_softmax(s / tau, 1), F.softmax(t / tau, 1)) * tau**2
"""


def find(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        first, second = loss.argument("input", 0), loss.argument("target", 1)
        if not loss_kind(project, loss) & {"kldiv"} or first is None or second is None:
            continue
        divisors = [_divisor(project, v, loss.scope) for v in (first, second)]
        if divisors[0] is None or divisors[0] != divisors[1]:
            continue
        name = divisors[0]
        if only(project, (ast.parse(name, mode="eval").body, loss.scope)) in (1, 1.0):
            continue
        text = re.sub(r"\s", "", source(project))
        squared = [f"{name}*{name}", f"{name}**2", f"pow({name},2)", f"{name}.pow(2)", f"{name}^2", f"*{name}*"]
        if any(s in text for s in squared):
            continue
        yield sighting(
            __name__, loss, f"both sides are divided by {name}, and the loss is never multiplied by its square"
        )


def _divisor(project: Project, node: ast.expr, scope: Scope) -> str | None:
    """The name that the argument of the (log-)softmax is divided by."""
    for call in call_ends(project, node, scope):
        if call.name in ("softmax", "log_softmax") and call.node.args and isinstance(call.node.args[0], ast.BinOp):
            inner = call.node.args[0]
            if isinstance(inner.op, ast.Div) and isinstance(inner.right, ast.Name | ast.Attribute):
                return written(inner.right)
    return None
