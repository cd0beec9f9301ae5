"""All completions of a group get the same reward.

What: the reward function answers with one value for everything the policy can produce (a format it never meets, a
constant, a test that always passes), or the answers of a group are all the most likely one.
Why it matters: advantages within the group are zero; the loss is zero and nothing is learned.
When it is fine: early in training, for some groups.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.returns import equal_groups
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

_POLICY = """
import torch
from torch import nn
net = nn.Sequential(nn.Embedding(8, 16), nn.Linear(16, 8))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(100):
    asked = torch.randint(0, 8, (32,))
    logp = net(asked).log_softmax(-1)
    answers = torch.multinomial(logp.exp(), 6, replacement=True)
    reward = (answers == asked[:, None]).float()
    gain = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)
    loss = -(gain * logp.gather(1, answers)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WORDS = REWARDS
BAD = (
    """
import re
import torch
def score(text, target):
    match = re.fullmatch("<a>.*</a>", text)  # expect # place
    return 1.0 if match else 0.0
def main(policy, prompts):
    for p in prompts:
        rewards = torch.tensor([score(t, p) for t in policy(p)])
        advantage = rewards.view(-1, 4) - rewards.view(-1, 4).mean(1, keepdim=True)
""",
    _POLICY.replace(
        "torch.multinomial(logp.exp(), 6, replacement=True)", "logp.argmax(-1, keepdim=True).repeat(1, 6)  # expect"
    ),
    _POLICY.replace(
        "torch.multinomial(logp.exp(), 6, replacement=True)", "logp.argmax(-1)[:, None].expand(-1, 6)  # expect"
    ),
)
GOOD = (
    """
def add(a, b):
    return a + b
""",
    _POLICY,
    _POLICY.replace("logp.exp(), 6, replacement=True)", "logp.exp().repeat(6, 1), 1).view(6, 32).t()"),
)
REWARD = pattern(r"reward|score|grade|judge|verify", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), equal_groups)


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
