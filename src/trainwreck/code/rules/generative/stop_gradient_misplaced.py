"""The stop-gradient of a loss stands on the side that is to learn.

What: ``mse(q.detach(), z)`` for the codebook, where ``mse(q, z.detach())`` is meant; or the similarity of two views
that detaches the output of the predictor instead of the target.
Why it matters: the codebook gets no gradient and never moves (or the encoder gets none); so does the predictor.
When it is fine: with a codebook updated by moving averages; for networks that another loss trains.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import made, network
from trainwreck.code.flow import Step, onward
from trainwreck.code.objective import Term, objectives
from trainwreck.code.order import inside, under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.attraction import both_stopped
from trainwreck.code.rehearsal.questions.idle_terms import exchanged
from trainwreck.code.rehearsal.questions.quantising import misplaced
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
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
    """
import torch.nn as nn, torch.nn.functional as F
class Sim(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(8, 8), nn.Linear(8, 8)
    def forward(self, x):
        z = self.f(x)
        return z, self.g(z)
def distance(p, z):
    return -F.cosine_similarity(p.detach(), z, dim=-1).mean()  # expect
def train(loader, opt):
    net = Sim()
    for a, b in loader:
        za, pa = net(a)
        zb, pb = net(b)
        loss = distance(pa, zb) + distance(pb, za)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch, torch.nn as nn, torch.nn.functional as F
def train(loader):
    body, head = nn.Linear(8, 8), nn.Linear(8, 8)
    opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for a, b in loader:
        za, zb = body(a), body(b)
        guess = F.normalize(head(za), dim=-1).detach()  # expect
        goal = F.normalize(zb, dim=-1)
        loss = 2 - 2 * (guess * goal).sum(-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = (
    """
import torch, torch.nn as nn, torch.nn.functional as F
class Sim(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(8, 8), nn.Linear(8, 8)
    def forward(self, x):
        z = self.f(x)
        return z, self.g(z)
def distance(p, z):
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()
def train(loader, opt):
    net = Sim()
    for a, b in loader:
        za, pa = net(a)
        zb, pb = net(b)
        loss = distance(pa, zb) + distance(pb, za)
        opt.zero_grad()
        loss.backward()
        opt.step()
def gan(loader, g, d, og, od):
    for x, n in loader:
        fake = g(n)
        loss = F.softplus(d(fake.detach())).mean() + F.softplus(-d(x)).mean()
        loss.backward()
        od.step()
        worse = F.softplus(-d(fake)).mean()
        worse.backward()
        og.step()
def distil(loader, opt):
    big, small = nn.Linear(8, 8), nn.Linear(8, 8)
    for x, _ in loader:
        loss = F.mse_loss(big(x).detach(), small(x))
        loss.backward()
        opt.step()
""",
    """
import torch.nn.functional as F
def losses(z, q):
    codebook_loss = F.mse_loss(q, z.detach())
    commit_loss = F.mse_loss(z, q.detach())
    return codebook_loss, commit_loss
""",
)
HELD = pattern(r"teacher|target|ema|momentum|frozen|slow|critic|value|old|ref", re.IGNORECASE)
"""Networks that are meant to get no gradient, or get it from a loss of their own."""
MAX_PLACES = 1500


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), misplaced, exchanged, both_stopped)


def _written(project: Project) -> Iterator[Evidence]:
    found = list(_same_side(project))
    found = found or list(_by_terms(project)) or list(_predictor(project))
    yield from found


def _predictor(project: Project) -> Iterator[Evidence]:
    """A head on top of a network that learns, whose output reaches no loss but through ``detach``."""
    cuts = [c for c in project.calls("detach") if c.receiver is not None and _in_pair(project, c)]
    starts = [c for c in project.calls("backward") if c.receiver is not None]
    if not cuts or not starts:
        return
    live: set[int] = set()
    for start in starts:
        if start.receiver is not None:
            live |= {id(n) for n, _ in _reached(project, start.receiver, start.scope, cut=True)}
    for cut in cuts:
        if cut.receiver is None or id(_partner(project, cut)) not in live:
            continue
        behind = [(n, s) for n, s in _reached(project, cut.receiver, cut.scope, cut=True) if _layer_call(project, n, s)]
        for node, scope in behind:
            assert isinstance(node, ast.Call)
            name = written(node.func)
            if HELD.search(name) or _elsewhere(project, node, scope, live):
                continue
            below = {written(n.func) for n, s in behind if isinstance(n, ast.Call) and id(n) != id(node)}
            inner = [
                a for a in node.args for n, s in _reached(project, a, scope, cut=True) if n in {b for b, _ in behind}
            ]
            if inner and below - {name}:
                text = f"the stop-gradient is on what {name} gives: it never learns"
                yield sighting(__name__, cut, text, proof=[Call(node, scope)])
                return


def _in_pair(project: Project, call: Call) -> bool:
    """True if what is detached is one side of a distance or similarity: by itself or by the name it gets."""
    return _partner(project, call) is not None


def _partner(project: Project, call: Call) -> ast.expr | None:
    """The other side of the distance or similarity that the detached value takes part in."""
    for place in _uses(project, call):
        at: ast.AST = place
        for above in project.ancestors(place, call.scope):
            if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub | ast.Mult):
                other = above.right if above.left is at else above.left
                if not isinstance(other, ast.Constant | ast.UnaryOp):
                    return other
            elif isinstance(above, ast.Call) and at in above.args:
                name = last_name(above.func)
                if name.endswith("loss") or "similarity" in name or name in ("cdist", "dist", "criterion"):
                    return next((a for a in above.args if a is not at), None)
            elif isinstance(above, ast.stmt):
                break
            at = above
    return None


def _uses(project: Project, call: Call) -> Iterator[ast.AST]:
    """The call, and where the name that it is bound to is read in the same function."""
    yield call.node
    statement = project.statement(call.node, call.scope)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        for node in project.within(call.scope, ast.Name):
            assert isinstance(node, ast.Name)
            if node.id == name and isinstance(node.ctx, ast.Load) and node.lineno > statement.lineno:
                yield node


def _layer_call(project: Project, node: ast.AST, scope: Scope) -> bool:
    """True for the call of a layer or network object that is made in the program."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return False
    if under_no_grad(project, node, scope) is not None:
        return False
    return project.resolve(node.func, scope) is None and network(project, node.func, scope)


def _elsewhere(project: Project, node: ast.Call, scope: Scope, live: set[int]) -> bool:
    """True if this call, or another one of the same network, reaches a loss with its gradient, or if it is unknown."""
    makers = {id(c.node) for c in made(project, node.func, scope)}
    name = last_name(node.func)
    for other in project.calls(name):
        same = {id(c.node) for c in made(project, other.node.func, other.scope)} & makers
        if (same or not makers) and id(other.node) in live:
            return True
    handed = [c for c in project.calls("load_state_dict", "requires_grad_", "lerp_", "mul_", "copy_")]
    return any(name in written(c.receiver) for c in handed)


def _reached(project: Project, start: ast.expr, scope: Scope, cut: bool) -> list[tuple[ast.AST, Scope]]:
    """What the value of ``start`` comes from; ``cut``: with its gradient, so not through ``detach``."""
    queue, seen = deque([Step(start, scope, (), None, 0)]), set[tuple[int, object]]()
    found: list[tuple[ast.AST, Scope]] = []
    while queue and len(seen) < MAX_PLACES:
        step = queue.popleft()
        if (id(step.node), step.path) in seen:
            continue
        seen.add((id(step.node), step.path))
        stops = isinstance(step.node, ast.Call) and last_name(step.node.func) in ("detach", "item", "no_grad")
        if cut and (stops or under_no_grad(project, step.node, step.scope) is not None):
            continue
        found.append((step.node, step.scope))
        queue.extend(onward(project, step))
    return found


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
