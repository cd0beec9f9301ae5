"""Activation checkpointing that does not say which variant it means.

What: `torch.utils.checkpoint.checkpoint` without `use_reentrant`.
Why it matters: torch warns; the default is announced to change, and the old variant drops gradients of inputs
that need none.
When it is fine: where the argument comes through `**kwargs` or a partial.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
def run(block, x, blocks):
    x = checkpoint(block, x)  # expect
    return checkpoint_sequential(blocks, 2, x)  # expect
"""
GOOD = """
import functools
from torch.utils.checkpoint import checkpoint
from mylib import checkpoint as save
def run(block, x, **more):
    save(block, x)
    checkpoint(block, x, **more)
    functools.partial(checkpoint, use_reentrant=True)(block, x)
    return checkpoint(block, x, use_reentrant=False)
"""


NAMES = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("checkpoint", "checkpoint_sequential"):
        if call.open_ended or call.argument("use_reentrant") is not None or project.called(call) not in NAMES:
            continue
        text = f"{call.name} does not say use_reentrant: torch warns, and the default is to change"
        yield sighting(__name__, call, text, fix=Fix("pass use_reentrant=False"))
