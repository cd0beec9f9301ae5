"""Tied weights are copies.

What: the output head gets a ``clone()`` of the embedding's weight, or its values by ``.data`` or ``copy_``, in a
line that is meant to tie them.
Why it matters: they start equal and drift apart; memory and parameters are not saved.
When it is fine: for a head that is only initialised from the embedding.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    guarded,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import modules
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
class Lm(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        self.head = nn.Linear(d, v, bias=False)
        self.tie_weights()
    def tie_weights(self):
        self.head.weight = nn.Parameter(self.emb.weight.clone())  # expect
""",
    """
from torch import nn
class Lm(nn.Module):
    def __init__(self, v, d, tie=True):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.out = nn.Linear(d, v, bias=False)
        if tie:
            self.out.weight.data = self.tok.weight.data.clone()  # expect
""",
)
GOOD = """
from torch import nn
class Lm(nn.Module):
    def __init__(self, v, d, tie=True):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.out = nn.Linear(d, v, bias=False)
        self.other = nn.Linear(d, v, bias=False)
        if tie:
            self.out.weight = self.tok.weight
        self.other.weight.data = self.tok.weight.data.clone()
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        for method in owner.children:
            for node in project.within(method, ast.Assign) if method.kind == "function" else ():
                assert isinstance(node, ast.Assign)
                target, value = written(node.targets[0]), written(node.value)
                if (
                    not re.search(r"\.weight(\.data)?$", target)
                    or "self." not in value
                    or not re.search(r"\.weight(\.data)?\.clone\(\)", value)
                ):
                    continue
                if "tie" in method.name.lower() or guarded(
                    project, node, method, re.compile(r"\btie|tied|share", re.IGNORECASE)
                ):
                    yield sighting(__name__, (node, method), "this copies the weight: the two matrices drift apart")
