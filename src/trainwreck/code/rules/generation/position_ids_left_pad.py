"""Positions are counted from the padding on.

What: rows are padded at their beginning, continuations are generated behind them, and the table of positions is asked
about 0, 1, 2, ... from the left end of the padded row.
Why it matters: the same prompt gets other positions beside a longer one; what was learned for its beginning is not
found again.
When it is fine: with positions worked out from the mask; for windows of the last events, which are not continued.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.left_padding import positions_from_padding
from trainwreck.core.evidence import Evidence

_SCRIPT = """
import torch
from torch import nn
class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 32), nn.Embedding(64, 32)
        self.mix = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.out = nn.Linear(32, 50)
    def forward(self, ids, real):
        n = ids.size(1)
        place = PLACE
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        h = self.words(ids) + self.places(place)
        return self.out(self.mix(h, src_mask=later, src_key_padding_mask=~real))
def padded(rows):
    n = max(map(len, rows))
    ids, real = torch.zeros(len(rows), n, dtype=torch.long), torch.zeros(len(rows), n, dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, START] = torch.tensor(row)
        real[i, START] = True
    return ids, real
net = Writer()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(1000):
    ids, real = padded([[5] * (3 + step % 7), [6, 7, 8]])
    opt.zero_grad()
    nn.functional.cross_entropy(net(ids, real)[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0).backward()
    opt.step()
ids, real = padded([[5, 5], [6, 7, 8, 9]])
for _ in range(10):
    more = net(ids, real)[:, -1].argmax(-1, keepdim=True)
    ids, real = torch.cat([ids, more], 1), torch.cat([real, more > 0], 1)
print(ids)
"""
BAD = (
    _SCRIPT.replace("PLACE", "torch.arange(n)  # expect").replace("START", "n - len(row):"),
    _SCRIPT.replace("PLACE", "torch.arange(n).expand(len(ids), n)  # expect").replace("START", "-len(row):"),
)
GOOD = (
    _SCRIPT.replace("PLACE", "(real.cumsum(1) - 1).clamp(min=0)").replace("START", "n - len(row):"),
    _SCRIPT.replace("PLACE", "torch.arange(n)").replace("START", ": len(row)"),
    _SCRIPT.replace("PLACE", "torch.arange(n)").replace("START", "n - len(row):").partition("for _ in")[0],
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), positions_from_padding)
