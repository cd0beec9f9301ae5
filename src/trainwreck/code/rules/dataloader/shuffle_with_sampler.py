"""shuffle together with a sampler.

What: ``DataLoader(shuffle=True, sampler=...)``.
Why it matters: the constructor raises a ValueError; the order is the sampler's business.
When it is fine: with ``shuffle=(sampler is None)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import (
    is_torch,
    made,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch.utils.data import DataLoader, WeightedRandomSampler
def build(ds, weights):
    sampler = WeightedRandomSampler(weights, len(weights))
    return DataLoader(ds, batch_size=8, shuffle=True, sampler=sampler)  # expect
""",
    """
import torch.utils.data as data
def build(ds):
    kw = dict(batch_size=8, shuffle=True)
    s = data.SubsetRandomSampler(range(10))
    return data.DataLoader(ds, sampler=s, **kw)  # expect
""",
)
GOOD = """
from torch.utils.data import DataLoader, DistributedSampler
def build(ds, ddp, sampler=None):
    own = DistributedSampler(ds) if ddp else None
    a = DataLoader(ds, shuffle=(own is None), sampler=own)
    b = DataLoader(ds, shuffle=True, sampler=None)
    c = DataLoader(ds, shuffle=False, sampler=own)
    return a, b, c, DataLoader(ds, shuffle=True, sampler=sampler)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*LOADERS):
        sampler, shuffle = option(project, call, "sampler", 3), option(project, call, "shuffle", 2)
        if sampler is None or shuffle is None or not is_torch(project, call) or only(project, shuffle) is not True:
            continue
        calls = made(project, *sampler)
        if calls and all("Sampler" in c.name for c in calls) and not _optional(project, *sampler):
            yield sighting(__name__, call, "shuffle=True and a sampler exclude each other", proof=calls[:1])


def _optional(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True if the sampler may be None."""
    if isinstance(node, ast.IfExp):
        return True
    bindings = project.bindings(node, scope)
    none = [
        b
        for b in bindings
        if isinstance(b.value, ast.IfExp) or (isinstance(b.value, ast.Constant) and b.value.value is None)
    ]
    return bool(none) or any(b.kind == "param" for b in bindings) or len(bindings) > 1
