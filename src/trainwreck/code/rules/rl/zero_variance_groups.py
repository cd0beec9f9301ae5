"""All completions of a group get the same reward.

What: the reward function answers with one value for everything the policy can produce (a format it never meets, a
constant, a test that always passes).
Why it matters: advantages within the group are zero; the loss is zero and nothing is learned.
When it is fine: early in training, for some groups.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
import re
import torch
def score(text, target):
    match = re.fullmatch("<a>.*</a>", text)  # expect # place
    return 1.0 if match else 0.0
def main(policy, prompts):
    for p in prompts:
        rewards = torch.tensor([score(t, p) for t in policy(p)])
        advantage = rewards.view(-1, 4) - rewards.view(-1, 4).mean(1, keepdim=True)
"""
GOOD = """
def add(a, b):
    return a + b
"""
REWARD = re.compile(r"reward|score|grade|judge|verify", re.IGNORECASE)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    function = _reward_function(project)
    if function is not None:
        body: list[ast.stmt] = getattr(function.node, "body", [])
        matching = next((s for s in body if re.search(r"match|search|==| in ", written(s))), None)
        first = next((s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))), body[0])
        yield guess(__name__, (matching or first, function), "the reward is decided here")


def _reward_function(project: Project) -> Scope | None:
    for call in project.calls("GRPOTrainer", "RLOOTrainer", "PPOTrainer"):
        value = call.argument("reward_funcs") or call.argument("reward_model")
        items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value] if value is not None else []
        for item in items:
            found = project.resolve(item, call.scope)
            if found is not None and found.kind == "function":
                return found
    for scope in project.scopes:
        for name, bindings in scope.bindings.items():
            if not re.match(r"(\w+_)?rewards?$", name):
                continue
            for binding in bindings:
                if binding.value is None or binding.kind != "assign":
                    continue
                for step in back(project, binding.value, scope):
                    node = step.node
                    target = project.resolve(node.func, step.scope) if isinstance(node, ast.Call) else None
                    if target is not None and target.kind == "function" and step.scope is scope:
                        return target
    named = [f for f in project.functions if REWARD.search(f.name)]
    return named[0] if named else None
