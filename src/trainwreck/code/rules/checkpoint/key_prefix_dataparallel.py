"""The state of a model wrapped in DataParallel or DDP is saved with ``module.`` before every key.

What: ``state_dict()`` is taken from the wrapper, not from ``model.module``.
Why it matters: loading into a plain model finds no key (or with ``strict=False`` loads nothing).
When it is fine: where both sides are wrapped.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.stored import prefixed_by_wrapper
from trainwreck.code.rule import guess
from trainwreck.code.rules.checkpoint.key_prefix_compile import saved_wrapped
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"[\"']module\.|state_dict.*\bmodule\.",)
ERROR = 'RuntimeError: Missing key(s) in state_dict: "w". Unexpected key(s) in state_dict: "module.w"'
WRAPS = ("DataParallel", "DistributedDataParallel", "DDP")
BAD = """
import torch
from torch import nn
def main(net, other, path):
    model = nn.DataParallel(net)
    torch.save({"model": model.state_dict()}, path)  # expect
    other.load_state_dict(torch.load(path)["model"])  # fails
"""
GOOD = """
import torch
from torch import nn
def main(net, path):
    model = nn.DataParallel(net)
    torch.save(model.module.state_dict(), path)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, prefixed_by_wrapper)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from saved_wrapped(project, surface, __name__, WRAPS, "module.")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("load_state_dict"):
        yield guess(__name__, call, "the state is loaded here")
        return
