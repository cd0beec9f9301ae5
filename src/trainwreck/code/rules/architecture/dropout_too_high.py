"""Almost everything is dropped.

What: a literal dropout rate of 0.9 or more.
Why it matters: a tenth of the units is left in each step: the model underfits. In other libraries the number is
what is kept.
When it is fine: for dropping whole inputs on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    DROPOUTS,
    is_torch,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.9), nn.Linear(8, 2))  # expect
""",
    """
import torch.nn.functional as F
KEEP = 0.95
def forward(x, training):
    return F.dropout(x, p=KEEP, training=training)  # expect
""",
)
GOOD = """
from torch import nn
def build(p):
    return nn.Dropout(0.5), nn.Dropout(p), nn.Dropout2d(0.1)
"""
HIGH = 0.9


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*sorted(DROPOUTS), "dropout", "dropout2d"):
        if not is_torch(project, call):
            continue
        rate = only(project, option(project, call, "p", 1 if call.name.startswith("d") else 0))
        if isinstance(rate, float) and HIGH <= rate < 1:
            yield sighting(
                __name__, call, f"{rate:.0%} of the units are dropped; p is what is dropped, not what is kept"
            )
