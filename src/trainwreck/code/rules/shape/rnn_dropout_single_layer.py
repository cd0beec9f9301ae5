"""Dropout between the layers of a recurrent net that has one.

What: ``LSTM(..., num_layers=1, dropout=0.3)``: dropout acts between layers.
Why it matters: it does nothing; torch warns.
When it is fine: never.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    complete,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
rnn = nn.LSTM(8, 16, dropout=0.3, batch_first=True)  # expect
""",
    """
import torch
LAYERS = 1
gru = torch.nn.GRU(8, 16, LAYERS, dropout=0.5)  # expect
""",
)
GOOD = """
from torch import nn
def build(n, p):
    other = nn.LSTM(8, 16, dropout=0.0), nn.RNN(8, 16, dropout=p)
    return nn.LSTM(8, 16, 2, dropout=0.3), nn.GRU(8, 16, n, dropout=0.3), other
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("LSTM", "GRU", "RNN"):
        if not project.called(call).startswith("torch.nn") or not complete(project, call):
            continue
        layers, dropout = option(project, call, "num_layers", 2), only(project, option(project, call, "dropout"))
        if isinstance(dropout, float) and dropout > 0 and (layers is None or only(project, layers) == 1):
            yield sighting(__name__, call, "dropout acts between layers, and there is only one")
