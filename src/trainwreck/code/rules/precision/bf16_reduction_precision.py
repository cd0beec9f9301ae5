"""Positions or sums in bf16.

What: numbers of positions beyond 256 are made as bf16 (or cast to it) before they become angles, an order or indices;
or a sum of many additions is kept in a bf16 zero.
Why it matters: bf16 has 8 digits: from 256 on two neighbours are one number, and a sum stands still once what is added
is less than half its last digit.
When it is fine: positions in fp32 that are cast after the sine; short sequences; shares of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.counted_in_half import positions_in_half, summed_in_half
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
net = nn.Linear(16, 4)
opt = torch.optim.Adam(net.parameters())
freq = 100.0 ** (-torch.arange(8) / 8)
t = torch.arange(1000, dtype=torch.bfloat16)  # expect
table = torch.cat([(t[:, None] * freq).sin(), (t[:, None] * freq).cos()], 1)
for step in range(100):
    rows = torch.randint(0, 1000, (64,))
    loss = nn.functional.cross_entropy(net(table.float()[rows]), rows % 4)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch
from torch import nn
net = nn.Linear(16, 4)
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(512, 16), torch.randint(0, 4, (512,))
seen = torch.zeros((), dtype=torch.bfloat16)  # expect
for step in range(5000):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    seen += loss.detach()
print(seen / 5000)
""",
)
GOOD = """
import torch
from torch import nn
net = nn.Linear(16, 4)
opt = torch.optim.Adam(net.parameters())
freq = 100.0 ** (-torch.arange(8, dtype=torch.bfloat16) / 8)
t = torch.arange(1000, dtype=torch.float32)
near = torch.arange(200, dtype=torch.bfloat16)[:, None] * freq
table = torch.cat([(t[:, None] * freq).sin(), (t[:, None] * freq).cos()], 1).bfloat16()
seen = torch.zeros(())
for step in range(5000):
    part = torch.zeros((), dtype=torch.bfloat16)
    rows = torch.randint(0, 1000, (64,))
    loss = nn.functional.cross_entropy(net(table.float()[rows] + near.sin().mean()), rows % 4)
    opt.zero_grad()
    loss.backward()
    opt.step()
    part += loss.detach()
    seen += part.float()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, positions_in_half)
    yield from answers(__name__, project, summed_in_half)
