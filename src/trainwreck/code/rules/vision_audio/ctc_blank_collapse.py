"""A symbol of the targets has the number of the blank.

What: the labels of a connectionist temporal classification start at 0, and 0 is the blank (the default), or the blank
is another number that a symbol has too.
Why it matters: that symbol can never be told from "nothing": paths with it are counted wrongly, and the blank wins.
When it is fine: with labels from 1, or a blank after the last symbol.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.classes import blank_used
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
from torch import nn
net = nn.Linear(8, 6)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(30, 16, 8)
    y = torch.randint(0, 5, (16, 4))  # expect
    lengths, sizes = torch.full((16,), 30), torch.full((16,), 4)
    loss = F.ctc_loss(net(x).log_softmax(-1), y, lengths, sizes)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch
from torch import nn
net = nn.Linear(8, 6)
criterion = nn.CTCLoss(blank=5)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(30, 16, 8)
    y = torch.randint(0, 5, (16, 4)) + 1  # expect
    loss = criterion(net(x).log_softmax(-1), y, torch.full((16,), 30), torch.full((16,), 4))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
from torch import nn
net = nn.Linear(8, 6)
last = nn.CTCLoss(blank=5)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(30, 16, 8)
    y = torch.randint(0, 5, (16, 4))
    lengths, sizes = torch.full((16,), 30), torch.full((16,), 4)
    logs = net(x).log_softmax(-1)
    loss = F.ctc_loss(logs, y + 1, lengths, sizes) + last(logs, y, lengths, sizes)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, blank_used)
