"""Discounted returns are stored in reversed order.

What: returns are computed from the last step backwards and appended, and never turned round.
Why it matters: each action gets the return of another step: good and bad are mixed up.
When it is fine: with ``insert(0, ...)``, ``appendleft`` or ``reverse``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    names,
    text_of,
)
from trainwreck.code.order import (
    inside,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.left_turned import left_turned
from trainwreck.code.rehearsal.questions.next_values import summed_forwards
from trainwreck.code.rehearsal.questions.returns import discounted_past, summed_so_far
from trainwreck.code.rehearsal.questions.turning import unturned
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
BAD = (
    """
import torch
def returns_of(rewards, gamma):
    R, returns = 0.0, []
    for r in reversed(rewards):
        R = r + gamma * R
        returns.append(R)  # expect
    return torch.tensor(returns)
""",
    """
class Reinforce:
    def finish(self):
        total, out = 0, []
        for reward in self.rewards[::-1]:
            total = reward + self.gamma * total
            out.append(total)  # expect
        loss = sum(-lp * ret for lp, ret in zip(self.log_probs, out))
        loss.backward()
""",
    """
import torch
def returns(rewards, gamma=0.99):
    out, g = [], 0.0
    for r in rewards:  # expect
        g = r + gamma * g
        out.append(g)
    return torch.tensor(out)
""",
)
GOOD = """
import torch
def returns_of(rewards, gamma):
    R, a, b, c = 0.0, [], [], []
    for r in reversed(rewards):
        R = r + gamma * R
        a.insert(0, R)
        b.append(R)
    b.reverse()
    for r in rewards[::-1]:
        R = r + gamma * R
        c.append(R)
    return torch.tensor(a), b, torch.tensor(c[::-1])
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, _written(project), discounted_past, unturned, left_turned, summed_so_far, summed_forwards
    )


def _written(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for loop in project.within(scope, ast.For):
                assert isinstance(loop, ast.For)
                if not isinstance(loop.target, ast.Name):
                    continue
                running = _running(loop)
                backwards = re.match(r"reversed\(|.*\[::-1\]$|.*\.flip\(", written(loop.iter))
                if not backwards:
                    yield from _forwards(project, scope, loop, running)
                    continue
                for call in project.calls_by_scope.get(scope, ()):
                    if (
                        call.name != "append"
                        or not inside(project, call.node, scope, loop)
                        or not isinstance(call.receiver, ast.Name)
                    ):
                        continue
                    if running is None or len(call.node.args) != 1 or written(call.node.args[0]) != running:
                        continue
                    name = call.receiver.id
                    text = text_of(project, scope)
                    if not any(
                        t in text
                        for t in (
                            f"{name}.reverse(",
                            f"reversed({name})",
                            f"{name}[::-1]",
                            f"flip({name}",
                            f"flip({name})",
                            f"{name}).flip",
                            f"{name}), ",
                            "flip(",
                        )
                    ):
                        yield sighting(
                            __name__, call, f"{name} is filled from the last step backwards, and never turned round"
                        )


def _forwards(project: Project, scope: Scope, loop: ast.For, running: str | None) -> Iterator[Evidence]:
    """``for r in rewards: R = r + gamma * R`` collects what came before a step, not what comes after it."""
    if running is None or not re.search(r"rew|(^|\W)r(s)?$", written(loop.iter), re.IGNORECASE):
        return
    for call in project.calls_by_scope.get(scope, ()):
        stored = call.name == "append" and len(call.node.args) == 1 and written(call.node.args[0]) == running
        if stored and inside(project, call.node, scope, loop):
            yield sighting(__name__, (loop, scope), "the rewards are summed forwards: each return holds the past")


def _running(loop: ast.For) -> str | None:
    """The name R of ``R = r + gamma * R``."""
    assert isinstance(loop.target, ast.Name)
    for node in loop.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.BinOp):
            name = node.targets[0].id
            if (
                isinstance(node.value.op, ast.Add)
                and {name, loop.target.id} <= names(node.value)
                and "gamma" in written(node.value)
            ):
                return name
    return None
