"""batch_sampler together with what it excludes.

What: ``DataLoader(batch_sampler=...)`` also gets ``batch_size``, ``shuffle``, ``sampler`` or ``drop_last``.
Why it matters: the constructor raises a ValueError.
When it is fine: where the others have their default values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import (
    is_torch,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch.utils.data import DataLoader
def build(ds, buckets):
    return DataLoader(ds, batch_size=32, batch_sampler=buckets)  # expect
""",
    """
import torch
def build(ds, buckets):
    options = {"shuffle": True, "num_workers": 2}
    return torch.utils.data.DataLoader(ds, batch_sampler=buckets, **options)  # expect
""",
)
GOOD = """
from torch.utils.data import DataLoader
def build(ds, buckets, kw):
    a = DataLoader(ds, batch_sampler=buckets, num_workers=2)
    b = DataLoader(ds, batch_size=1, shuffle=False, batch_sampler=buckets)
    c = DataLoader(ds, batch_size=32, batch_sampler=None)
    return a, b, c, DataLoader(ds, batch_sampler=buckets, **kw)
"""
DEFAULTS = {"batch_size": 1, "shuffle": False, "sampler": None, "drop_last": False}


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*LOADERS):
        at = option(project, call, "batch_sampler", 4)
        if at is None or not is_torch(project, call) or not _certain(project, at):
            continue
        for name, default in DEFAULTS.items():
            other = option(project, call, name, {"batch_size": 1, "shuffle": 2, "sampler": 3}.get(name))
            if other is None:
                continue
            value = only(project, other)
            if value is ... and name == "sampler" and not _certain(project, other):
                continue
            if value is ... and name != "sampler":
                continue
            if value != default and not (name == "shuffle" and value is None):
                yield sighting(__name__, call, f"batch_sampler excludes {name}")
                break


def _certain(project: Project, at: tuple[ast.expr, Scope]) -> bool:
    """True unless the value is None, or may be (a parameter that defaults to None, a conditional)."""
    node, scope = at
    if isinstance(node, ast.IfExp) or (isinstance(node, ast.Constant) and node.value is None):
        return False
    return not any(known.value is None for known in values(project, node, scope))
