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

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import linear, only, source
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.distilling import temperatures
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import is_module, loss_kind, losses
from trainwreck.code.spine import call_ends, ends
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
    """
import torch
import torch.nn.functional as F
def kd(student, teacher, loader, opt, T=4.0, alpha=0.9):
    teacher.eval()
    for x, y in loader:
        with torch.no_grad():
            soft = F.softmax(teacher(x) / T, -1)
        logp = F.log_softmax(student(x), -1)  # expect
        loss = alpha * F.kl_div(logp, soft, reduction="batchmean") * T * T
        opt.zero_grad()
        loss.backward()
        opt.step()
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

NETWORK = pattern(r"student|teacher|model|net", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), temperatures)


def _written(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        first, second = loss.argument("input", 0), loss.argument("target", 1)
        if not loss_kind(project, loss) & {"kldiv"} or first is None or second is None:
            continue
        divisors = [_divisor(project, v, loss.scope) for v in (first, second)]
        plain = [_plain_softmax(project, v, loss.scope) for v in (first, second)]
        for side, other in ((0, 1), (1, 0)):
            if plain[side] is not None and divisors[other] is not None and _hot(project, divisors[other], loss.scope):
                text = f"only one side is divided by the temperature {divisors[other]}"
                yield sighting(__name__, plain[side] or loss, text, proof=[loss])
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


def _hot(project: Project, name: str | None, scope: Scope) -> bool:
    """False for a temperature that is 1."""
    if name is None:
        return False
    return only(project, (ast.parse(name, mode="eval").body, scope)) not in (1, 1.0)


def _plain_softmax(project: Project, node: ast.expr, scope: Scope) -> Call | None:
    """The softmax of what is not divided by anything: the output of a network itself."""
    for call in call_ends(project, node, scope):
        argument = call.node.args[0] if call.node.args else None
        if call.name in ("softmax", "log_softmax") and isinstance(argument, ast.Call | ast.Name):
            found = call_ends(project, argument, call.scope)
            whole = found and len(found) == len(ends(project, argument, call.scope))
            if whole and all(_network(project, c) for c in found):
                return call
    return None


def _network(project: Project, call: Call) -> bool:
    own = f"{written(call.node.func)}.parameters()" in source(project)
    return (
        own
        or bool(NETWORK.search(call.name))
        or linear(project, call)
        or is_module(project, call.node.func, call.scope)
    )


def _divisor(project: Project, node: ast.expr, scope: Scope) -> str | None:
    """The name that the argument of the (log-)softmax is divided by."""
    for call in call_ends(project, node, scope):
        if call.name in ("softmax", "log_softmax") and call.node.args and isinstance(call.node.args[0], ast.BinOp):
            inner = call.node.args[0]
            if isinstance(inner.op, ast.Div) and isinstance(inner.right, ast.Name | ast.Attribute):
                return written(inner.right)
    return None
