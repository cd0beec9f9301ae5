"""A loader option that needs worker processes, without any.

What: ``persistent_workers=True`` or ``prefetch_factor=...`` with ``num_workers`` 0 or left out.
Why it matters: the constructor raises a ValueError.
When it is fine: with ``num_workers`` above 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    complete,
    is_torch,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import LOADERS
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch.utils.data import DataLoader
def build(ds):
    return DataLoader(ds, batch_size=32, persistent_workers=True)  # expect
""",
    """
import torch
WORKERS = 0
def build(ds):
    return torch.utils.data.DataLoader(ds, num_workers=WORKERS, prefetch_factor=4)  # expect
""",
    """
from torch.utils.data import DataLoader
def build(ds):
    options = dict(batch_size=4, num_workers=0, persistent_workers=True)
    return DataLoader(ds, **options)  # expect
""",
)
GOOD = """
from torch.utils.data import DataLoader
def build(ds, n, kw):
    a = DataLoader(ds, num_workers=2, persistent_workers=True)
    b = DataLoader(ds, num_workers=n, persistent_workers=n > 0, prefetch_factor=2 if n else None)
    c = DataLoader(ds, num_workers=0, prefetch_factor=None, persistent_workers=False)
    return a, b, c, DataLoader(ds, persistent_workers=True, **kw)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*LOADERS):
        if not is_torch(project, call) or not complete(project, call):
            continue
        workers = option(project, call, "num_workers", 5)
        if workers is not None and only(project, workers) != 0:
            continue
        for name in ("persistent_workers", "prefetch_factor"):
            at = option(project, call, name)
            value = only(project, at)
            if value is True or (isinstance(value, int) and value and name == "prefetch_factor"):
                yield sighting(__name__, call, f"{name} needs num_workers above 0")
                break
