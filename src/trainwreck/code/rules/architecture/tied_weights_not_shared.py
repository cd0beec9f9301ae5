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

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    guarded,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.copied_weights import tied_by_copy, untied
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
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
    """
from torch import nn
class LM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.head = nn.Linear(d, v, bias=False)
        self.head.weight = nn.Parameter(self.tok.weight.detach().clone())  # expect
    def forward(self, x):
        return self.head(self.tok(x))
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
    yield from further(__name__, project, _seen(project), tied_by_copy, untied)


def _seen(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        for method in owner.children:
            for node in project.within(method, ast.Assign) if method.kind == "function" else ():
                assert isinstance(node, ast.Assign)
                target, value = written(node.targets[0]), written(node.value)
                if _embedding_to_head(project, owner, node, method):
                    yield sighting(__name__, (node, method), "this copies the weight: the two matrices drift apart")
                    continue
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


def _embedding_to_head(project: Project, owner: Scope, node: ast.Assign, method: Scope) -> bool:
    """``self.head.weight = nn.Parameter(self.tok.weight.clone())`` of an embedding and the linear layer above it."""
    target, value = written(node.targets[0]), written(node.value)
    goal = re.match(r"self\.(\w+)\.weight(\.data)?$", target)
    origin = re.search(r"self\.(\w+)\.weight", value)
    copies = re.search(r"clone\(|deepcopy\(|Parameter\(.*(data|detach)|\.detach\(", value)
    if goal is None or origin is None or copies is None:
        return False
    beside = "\n".join(method.module.lines[max(0, node.lineno - 2) : node.lineno])
    if target.endswith(".data") and not re.search(r"\btie|\btying|share", beside, re.IGNORECASE):
        return False
    kinds = [{last_name(c.node.func) for c in _makers(project, owner, m.group(1))} for m in (goal, origin)]
    return {"Linear", "Embedding"} == kinds[0] | kinds[1] and kinds[0] != kinds[1]


def _makers(project: Project, owner: Scope, name: str) -> list[Call]:
    return [
        Call(b.value, b.scope) for b in owner.attributes.get(name, ()) if isinstance(b.value, ast.Call) and not b.path
    ]
