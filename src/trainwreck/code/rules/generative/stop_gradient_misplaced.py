"""Both terms of a vector-quantisation loss stop the gradient on the same side.

What: ``mse(q.detach(), z)`` for the codebook, where ``mse(q, z.detach())`` is meant.
Why it matters: the codebook gets no gradient and never moves (or the encoder gets none).
When it is fine: with a codebook updated by moving averages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import inside
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = """
import torch.nn.functional as F
def losses(z, q):
    codebook_loss = F.mse_loss(q.detach(), z)  # expect
    commit_loss = F.mse_loss(z, q.detach())
    return codebook_loss, commit_loss
"""
GOOD = """
import torch.nn.functional as F
def losses(z, q):
    codebook_loss = F.mse_loss(q, z.detach())
    commit_loss = F.mse_loss(z, q.detach())
    return codebook_loss, commit_loss
"""


def find(project: Project) -> Iterator[Evidence]:
    seen: dict[tuple[int, frozenset[str]], list[tuple[Call, str]]] = {}
    for call in project.calls("mse_loss"):
        sides = [_side(a) for a in call.node.args[:2]]
        if len(sides) == 2 and sum(cut for _, cut in sides) == 1:
            names = frozenset(name for name, _ in sides)
            cut = next(name for name, is_cut in sides if is_cut)
            seen.setdefault((id(call.scope), names), []).append((call, cut))
    for group in seen.values():
        stopped = {cut for _, cut in group}
        if len(group) >= 2 and len(stopped) == 1:
            name = stopped.pop()
            if _either_or(project, group[0][0], group[1][0]):
                continue
            wrong = next(
                (c for c, _ in group if "code" in _target(project, c) or "vq" in _target(project, c)), group[0][0]
            )
            yield sighting(
                __name__,
                wrong,
                f"every term stops the gradient of {name}: it never learns",
                proof=[c for c, _ in group],
            )


def _side(node: ast.expr) -> tuple[str, bool]:
    if isinstance(node, ast.Call) and last_name(node.func) == "detach" and isinstance(node.func, ast.Attribute):
        return written(node.func.value), True
    return written(node), False


def _target(project: Project, call: Call) -> str:
    statement = project.statement(call.node, call.scope)
    return written(statement.targets[0]).lower() if isinstance(statement, ast.Assign) else ""


def _either_or(project: Project, one: Call, other: Call) -> bool:
    """True if the two stand in different branches of one ``if``: only one of them runs."""
    for above in project.ancestors(one.node, one.scope):
        if isinstance(above, ast.If) and inside(project, other.node, other.scope, above):
            sides = [any(inside(project, c.node, c.scope, s) for s in above.body) for c in (one, other)]
            return sides[0] != sides[1]
    return False
