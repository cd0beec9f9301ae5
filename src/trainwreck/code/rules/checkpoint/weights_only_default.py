"""``torch.load`` of a checkpoint that holds more than tensors, with the default ``weights_only``.

What: since torch 2.6 the default is True and refuses objects of own classes (a config, numpy scalars).
Why it matters: the checkpoint can't be loaded until it is said what is trusted.
When it is fine: for state dicts of tensors and plain containers.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.stored import refused, refused_whole
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.code.topics import RESTORING
from trainwreck.core.evidence import Evidence

SURFACES = (r"Weights only load failed", r"weights_only")
WORDS = RESTORING
ERROR = "UnpicklingError: Weights only load failed. This file can still be loaded"
BAD = """
import torch
def resume(path):
    return torch.load(path)  # expect # fails
"""
GOOD = """
import torch
def resume(path):
    return torch.load(path, weights_only=True)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, answers(__name__, project, refused), refused_whole)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in surface.calls(project):
        if call.name == "load" and call.argument("weights_only") is None:
            yield guess(__name__, call, "weights_only is not given, and True is the default since torch 2.6")
            return
