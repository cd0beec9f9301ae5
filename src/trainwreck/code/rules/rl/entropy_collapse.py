"""The policy becomes deterministic before it has explored.

What: the entropy is added to what is minimised; no (or a tiny) entropy bonus together with a high learning rate.
Why it matters: one action takes all the probability; nothing else is ever tried again.
When it is fine: at the end of a solved task.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.exploring import hardly_random
from trainwreck.code.rehearsal.questions.policy import entropy_minimised
from trainwreck.code.rehearsal.questions.soft import entropy_punished
from trainwreck.code.rehearsal.questions.squashed import logarithm_for_temperature
from trainwreck.code.rule import guess
from trainwreck.code.rules.optimization.lr_too_high import rate_place
from trainwreck.code.surface import Surface
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

_POLICY = """
import torch
from torch import nn
from torch.distributions import Categorical
net = nn.Linear(4, 3)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(1000):
    obs, reward = torch.randn(32, 4), torch.randn(32)
    pi = Categorical(logits=net(obs))
    action = pi.sample()
    goal = -(pi.log_prob(action) * (reward - reward.mean())).mean()
    loss = goal - 0.01 * pi.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WORDS = REWARDS
BAD = (
    """
import torch
def main(policy, lr=0.1, entropy_coef=0.0):  # expect # place
    opt = torch.optim.Adam(policy.parameters(), lr=lr)
    return opt
""",
    _POLICY.replace("goal - 0.01 * pi.entropy().mean()", "goal + 0.01 * pi.entropy().mean()  # expect"),
    _POLICY.replace(
        "    loss = goal - 0.01 * pi.entropy().mean()",
        "    logits = net(obs)\n    p = logits.softmax(-1)\n"
        "    loss = goal - 0.01 * (p * logits.log_softmax(-1)).sum(-1).mean()  # expect",
    ),
)
GOOD = (
    """
def main(policy):
    return policy
""",
    _POLICY,
    _POLICY.replace(
        "    loss = goal - 0.01 * pi.entropy().mean()",
        "    logits = net(obs)\n    p = logits.softmax(-1)\n"
        "    loss = goal + 0.01 * (p * logits.log_softmax(-1)).sum(-1).mean()",
    ),
)
BONUS = pattern(r"(^|_)ent(ropy)?(_|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    asked = (entropy_minimised, entropy_punished, hardly_random, logarithm_for_temperature)
    yield from further(__name__, project, (), *asked)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for function in project.functions:
        for name in function.params:
            if BONUS.search(name) and isinstance(function.node, ast.FunctionDef):
                arg = next(
                    (a for a in (*function.node.args.args, *function.node.args.kwonlyargs) if a.arg == name), None
                )
                if arg is not None:
                    yield guess(__name__, (arg, function), "the weight of the entropy bonus is set here")
                    return
    place = rate_place(project)
    if place is not None:
        yield guess(__name__, place[0], "the learning rate is set here", proof=place[1])
