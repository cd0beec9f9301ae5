"""Numbers are looked up in an embedding that has no row for them.

What: ids that the program draws, counts or shifts itself reach the number of rows of the table (``nn.Embedding(n, d)``
with ids from 1 to n, items looked up in the table of the users), or lie below zero.
Why it matters: an IndexError on the CPU at the first such id, an asynchronous assert on a GPU.
When it is fine: where the table has a row more (for padding, for what is not known).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.looked_up import beyond_the_table
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
table, head = nn.Embedding(300, 16), nn.Linear(16, 1)
opt = torch.optim.Adam([*table.parameters(), *head.parameters()])
goods = torch.randint(1, 301, (2000, 5))  # expect
wanted = torch.rand(2000)
for rows in torch.randperm(2000).split(50):
    opt.zero_grad()
    ((head(table(goods[rows]).mean(1)).squeeze(-1) - wanted[rows]) ** 2).mean().backward()
    opt.step()
""",
    """
import numpy as np
import torch
from torch import nn
class Scores(nn.Module):
    def __init__(self, people=100, films=80):
        super().__init__()
        self.p = nn.Embedding(people, 8)
        self.f = nn.Embedding(films, 8)
    def forward(self, i, j):
        return (self.p(i) * self.f(i)).sum(-1)  # expect
    def one(self, i, j):
        return (self.p(i) * self.f(j)).sum(-1)
net = Scores()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
pairs = np.array([(i, i % 80) for i in range(100) for _ in range(4)])
for at in range(0, len(pairs), 40):
    i, j = torch.from_numpy(pairs[at : at + 40, 0]), torch.from_numpy(pairs[at : at + 40, 1])
    opt.zero_grad()
    (net(i, j) - net.one(i, j) - 1).square().mean().backward()
    opt.step()
""",
)
GOOD = """
import numpy as np
import torch
from torch import nn
people, films, shown = nn.Embedding(100, 8), nn.Embedding(81, 8, padding_idx=0), nn.Embedding(10, 8)
opt = torch.optim.SGD([*people.parameters(), *films.parameters(), *shown.parameters()], lr=0.1)
rng = np.random.default_rng(0)
table = np.stack([rng.integers(100, size=4000), rng.integers(1, 81, size=4000)], axis=1)
for at in range(0, 4000, 40):
    i, j = torch.from_numpy(table[at : at + 40, 0]), torch.from_numpy(table[at : at + 40, 1])
    opt.zero_grad()
    ((people(i) * films(j)).sum(-1) + shown(j // 9).sum(-1) - 1).square().mean().backward()
    opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, beyond_the_table)
