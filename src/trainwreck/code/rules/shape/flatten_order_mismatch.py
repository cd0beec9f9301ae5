"""Outputs and targets are flattened in different orders.

What: outputs of shape (time, batch, classes) become rows, and targets of shape (batch, time) become a vector, by a
plain ``reshape`` each.
Why it matters: the shapes fit, and each output is compared with the target of another step of another example.
When it is fine: where both have the batch, or both the time first.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.flattening import axes_swapped, orders_apart, rows_apart
from trainwreck.code.rehearsal.questions.listed_across import listed_across
from trainwreck.code.rehearsal.questions.stacked_apart import stacked_apart
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
table, rnn, head = nn.Embedding(50, 32), nn.GRU(32, 32), nn.Linear(32, 50)
opt = torch.optim.Adam([*table.parameters(), *rnn.parameters(), *head.parameters()])
data = TensorDataset(torch.randint(0, 50, (100, 20)), torch.randint(0, 50, (100, 20)))
for x, y in DataLoader(data, 10, shuffle=True):
    out, _ = rnn(table(x.t()))
    loss = nn.functional.cross_entropy(head(out).reshape(-1, 50), y.reshape(-1))  # expect
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)
GOOD = (
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
table, rnn, head = nn.Embedding(50, 32), nn.GRU(32, 32), nn.Linear(32, 50)
opt = torch.optim.Adam([*table.parameters(), *rnn.parameters(), *head.parameters()])
data = TensorDataset(torch.randint(0, 50, (100, 20)), torch.randint(0, 50, (100, 20)))
for x, y in DataLoader(data, 10, shuffle=True):
    out, _ = rnn(table(x.t()))
    loss = nn.functional.cross_entropy(head(out).reshape(-1, 50), y.t().reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        answers(__name__, project, orders_apart),
        axes_swapped,
        rows_apart,
        stacked_apart,
        listed_across,
    )
