"""The codebook starts far from what the encoder gives.

What: the codes are drawn with a mean or spread that does not fit the encoder's outputs, or are all the same.
Why it matters: one code is nearest to everything; the others are never used.
When it is fine: small uniform values, or codes initialised from encoder outputs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.codebooks import badly_started
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = """
from torch import nn
class Quantizer(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.codebook = nn.Embedding(n, d)
        nn.init.normal_(self.codebook.weight, mean=8.0, std=2.0)  # expect
"""
GOOD = """
from torch import nn
class Quantizer(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.codebook = nn.Embedding(n, d)
        self.codebook.weight.data.normal_(0, 0.3)
        nn.init.uniform_(self.codebook.weight, -1.0 / n, 1.0 / n)
"""
CODES = pattern(r"codebook|code_?vec|codes\b|quant|\bvq\b", re.IGNORECASE)
FAR = 2.0
"""Mean over standard deviation beyond which nearly all codes lie on one side of zero (a judgement)."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), badly_started)


def _written(project: Project) -> Iterator[Evidence]:
    for call in _initialisations(project):
        offset = 0 if isinstance(call.receiver, ast.expr) and CODES.search(written(call.receiver)) else 1
        if call.name == "normal_":
            mean = number(project, call.argument("mean", offset), call.scope) or 0.0
            spread = number(project, call.argument("std", offset + 1), call.scope)
            if spread is not None and spread > 0 and abs(mean) >= FAR * spread and abs(mean) >= 1.0:
                yield sighting(__name__, call, f"all codes start around {mean:g}, far from an encoder's outputs")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in _initialisations(project):
        yield guess(__name__, call, "the codes get their first values here")
        return
    for call in project.calls("Embedding", "Parameter", "register_buffer"):
        statement = written(project.statement(call.node, call.scope))
        if CODES.search(statement):
            yield guess(__name__, call, "the codebook is made here")
            return


def _initialisations(project: Project) -> Iterator[Call]:
    for name in ("normal_", "uniform_", "constant_", "fill_", "trunc_normal_", "zeros_", "ones_", "copy_"):
        for call in project.calls(name):
            if CODES.search(written(call.node)) and last_name(call.node) == name:
                yield call
