"""The policy becomes deterministic before it has explored.

What: no (or a tiny) entropy bonus together with a high learning rate.
Why it matters: one action takes all the probability; nothing else is ever tried again.
When it is fine: at the end of a solved task.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.rules.optimization.lr_too_high import rate_place
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
import torch
def main(policy, lr=0.1, entropy_coef=0.0):  # expect # place
    opt = torch.optim.Adam(policy.parameters(), lr=lr)
    return opt
"""
GOOD = """
def main(policy):
    return policy
"""
BONUS = re.compile(r"(^|_)ent(ropy)?(_|$)", re.IGNORECASE)


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
