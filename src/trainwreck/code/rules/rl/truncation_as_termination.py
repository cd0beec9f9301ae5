"""A time limit counts as the end of the task.

What: ``done = terminated or truncated`` and the target multiplies the next value by ``1 - done``.
Why it matters: where an episode is only cut off, its future counts as zero: values are biased, more so for good
policies.
When it is fine: where the time is part of the observation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.episodes import cut_as_end
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
BAD = (
    """
import torch
def run(env, q, buffer, gamma):
    obs, _ = env.reset()
    for _ in range(1000):
        nxt, reward, terminated, truncated, _ = env.step(act(obs))
        done = terminated or truncated
        target = reward + gamma * q(nxt).max() * (1 - done)  # expect
        (q(obs).max() - target).pow(2).backward()
""",
    """
class Agent:
    def collect(self):
        s, r, term, trunc, info = self.env.step(self.act())
        done = term | trunc
        y = r + self.gamma * (1.0 - done) * self.v(s)  # expect
        return y
""",
)
GOOD = """
def run(env, q, buffer, gamma):
    obs, _ = env.reset()
    for _ in range(1000):
        nxt, reward, terminated, truncated, _ = env.step(act(obs))
        done = terminated or truncated
        target = reward + gamma * q(nxt).max() * (1 - terminated)
        if done:
            obs, _ = env.reset()
"""

DISCOUNTS = r"gamma|discount|0\.9\d*"


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), cut_as_end)


def _written(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        if "step(" not in walked.top.module.text:
            continue
        for scope in walked.scopes:
            ended = {}
            for node in project.within(scope, ast.Assign):
                assert isinstance(node, ast.Assign)
                flags = _flags(project, node, scope)
                if flags and isinstance(node.targets[0], ast.Name) and not _paid(project, node, scope):
                    ended[node.targets[0].id] = node
            for node in project.within(scope, ast.BinOp):
                assert isinstance(node, ast.BinOp)
                if not isinstance(node.op, ast.Add):
                    continue
                for name, source_ in ended.items():
                    if re.search(
                        rf"\(1(\.0)? - ((float|int)\()?{name}\b|\(not {name}\)", written(node.right)
                    ) and re.search(DISCOUNTS, written(node.right).lower()):
                        text = f"{name} holds the time limit too, and cuts the future off here"
                        yield sighting(
                            __name__, (node, scope), text, proof=[(scope.module.path, source_.lineno, written(source_))]
                        )


def _paid(project: Project, flag: ast.Assign, scope: Scope) -> bool:
    """True where ``if truncated:`` adds the discounted value of what follows to the reward."""
    sides = {n.id for n in ast.walk(flag.value) if isinstance(n, ast.Name)}
    for test in project.within(scope, ast.If):
        assert isinstance(test, ast.If)
        asked = {n.id for n in ast.walk(test.test) if isinstance(n, ast.Name)}
        if not asked & sides or asked & {written(t) for t in flag.targets}:
            continue
        for node in (n for statement in test.body for n in ast.walk(statement)):
            added = node.value if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) else None
            added = added or (node.value if isinstance(node, ast.Assign) else None)
            calls = added is not None and any(isinstance(n, ast.Call) for n in ast.walk(added))
            if added is not None and calls and re.search(DISCOUNTS, written(added).lower()):
                return True
    return False


def _flags(project: Project, node: ast.Assign, scope: Scope) -> bool:
    """True for ``a or b`` of the third and fourth results of ``env.step``."""
    value = node.value
    sides: list[ast.expr] = []
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or):
        sides = value.values
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        sides = [value.left, value.right]
    places = set()
    for side in sides:
        for binding in project.bindings(side, scope):
            if (
                isinstance(binding.value, ast.Call)
                and last_name(binding.value.func) == "step"
                and len(binding.path) == 1
            ):
                places.add(binding.path[0])
    return places == {2, 3}
