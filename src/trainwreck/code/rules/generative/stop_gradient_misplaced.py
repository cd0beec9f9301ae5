"""Both terms of a vector-quantisation loss stop the gradient on the same side.

What: ``mse(q.detach(), z)`` for the codebook, where ``mse(q, z.detach())`` is meant.
Why it matters: the codebook gets no gradient and never moves (or the encoder gets none).
When it is fine: with a codebook updated by moving averages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.objective import Term, objectives
from trainwreck.code.order import inside
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.terms import detached_pair
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def losses(z, q):
    codebook_loss = F.mse_loss(q.detach(), z)  # expect
    commit_loss = F.mse_loss(z, q.detach())
    return codebook_loss, commit_loss
""",
    """
import torch
from torch import nn
class VQ(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(k, d))
    def forward(self, z):
        q = self.codebook[torch.cdist(z, self.codebook).argmin(1)]
        codebook_loss = (z.detach() - q).pow(2).mean()
        commit = (z.detach() - q).pow(2).mean()  # expect
        return z + (q - z).detach(), codebook_loss + 0.25 * commit
def train(vq, loader, opt):
    for z in loader:
        q, vq_loss = VQ(8, 4)(z)
        loss = q.pow(2).mean() + vq_loss
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch.nn.functional as F
def losses(z, q):
    codebook_loss = F.mse_loss(q, z.detach())
    commit_loss = F.mse_loss(z, q.detach())
    return codebook_loss, commit_loss
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_same_side(project))
    yield from found or _by_terms(project)


def _by_terms(project: Project) -> Iterator[Evidence]:
    """Two terms of one objective, written as differences, that both stop the gradient of the same side."""
    for call, terms in objectives(project):
        pairs = [(t, pair) for t in terms if (pair := detached_pair(t)) is not None]
        for number_, (one, first) in enumerate(pairs):
            for other, second in pairs[number_ + 1 :]:
                if first != second or one.scope is not other.scope or one.node is other.node:
                    continue
                if _branches(project, one, other):
                    continue
                wrong = other
                for term in (one, other):
                    named = " ".join((*term.names, _name(project, term)))
                    if re.search(r"commit|enc", named) and re.search(r"^(z|h|x|e|enc|flat|latent)", first[0]):
                        wrong = term
                place = (project.statement(wrong.node, wrong.scope), wrong.scope)
                text = f"every term stops the gradient of {first[0]}: it never learns"
                yield sighting(__name__, place, text, proof=[call])
                return


def _branches(project: Project, one: Term, other: Term) -> bool:
    """True if the two stand in different branches of one ``if``: only one of them runs."""
    ours = [a for a in project.ancestors(one.node, one.scope) if isinstance(a, ast.If | ast.IfExp)]
    return any(a in ours for a in project.ancestors(other.node, other.scope) if isinstance(a, ast.If | ast.IfExp))


def _name(project: Project, term: Term) -> str:
    statement = project.statement(term.node, term.scope)
    return written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _same_side(project: Project) -> Iterator[Evidence]:
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
