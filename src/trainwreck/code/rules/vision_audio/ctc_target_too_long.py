"""A connectionist temporal classification has fewer frames than symbols.

What: layers with strides (or pooling) leave fewer frames of the output than the targets have symbols, or the input is
too short from the start.
Why it matters: no path fits such a target: its loss is infinite, or with ``zero_infinity`` it is left out without a
word, and the network learns from the short ones alone.
When it is fine: where each symbol keeps a frame, and one more stands between equal ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.frames import too_few
from trainwreck.core.evidence import Evidence

WORDS = ("ctc", "CTC")
BAD = (
    """
import torch
from torch import nn
net = nn.Sequential(nn.Conv1d(8, 16, 3, stride=4, padding=1), nn.ReLU(), nn.Conv1d(16, 6, 3, padding=1))  # expect
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
criterion = nn.CTCLoss(zero_infinity=True)
for step in range(100):
    x = torch.randn(16, 8, 40)
    y = torch.randint(1, 6, (16, 12))
    logs = net(x).permute(2, 0, 1).log_softmax(-1)
    loss = criterion(logs, y, torch.full((16,), 10), torch.full((16,), 12))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)
GOOD = """
import torch
from torch import nn
net = nn.Sequential(nn.Conv1d(8, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv1d(16, 6, 3, padding=1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
criterion = nn.CTCLoss(zero_infinity=True)
for step in range(100):
    x = torch.randn(16, 8, 40)
    y = torch.randint(1, 6, (16, 9))
    logs = net(x).permute(2, 0, 1).log_softmax(-1)
    loss = criterion(logs, y, torch.full((16,), 20), torch.full((16,), 9))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, too_few)
