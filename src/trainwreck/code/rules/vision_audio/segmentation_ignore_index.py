"""Masks hold a number for pixels without a class, and the loss counts it.

What: the labels of pixels that nobody drew (borders, void) are set to 255 or -1, and the cross entropy for each pixel
is not told to pass over that number, or over another one; or it passes over a class that is to be told.
Why it matters: the loss fails, or learns the number as a class.
When it is fine: with ``ignore_index`` set to that number, or an output for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.pixels import not_ignored
from trainwreck.code.rehearsal.questions.stand_ins import pixels_counted
from trainwreck.code.rehearsal.questions.unlearned_class import (
    class_passed_over,
    filled_with_a_label,
    label_passed_over,
    sample_passed_over,
)
from trainwreck.code.rehearsal.questions.void_counted import void_lost, void_scored
from trainwreck.code.rehearsal.questions.void_labels import void_pixels
from trainwreck.core.evidence import Evidence

EACH = """
import torch
import torch.nn.functional as F
from torch import nn
net = nn.Conv2d(1, 3, 3, padding=1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    x = torch.randn(8, 1, 16, 16)
    mask = (x[:, 0] > 0).long()
    mask[x[:, 0].abs() < 0.1] = 255
    known = mask != 255
    each = F.cross_entropy(net(x), torch.where(known, mask, 0), reduction="none")
    loss = each.mean()  # expect
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    EACH,
    """
import torch
import torch.nn.functional as F
from torch import nn
net = nn.Conv2d(1, 3, 3, padding=1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    x = torch.randn(8, 1, 16, 16)
    mask = (x[:, 0] > 0).long()
    mask[x[:, 0].abs() < 0.1] = 255
    loss = F.cross_entropy(net(x), mask)  # expect
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch
from torch import nn
net = nn.Conv1d(4, 5, 3, padding=1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss(ignore_index=-1)
for step in range(100):
    x = torch.randn(8, 4, 50)
    frames = torch.where(x[:, 0].abs() < 0.1, -2, torch.randint(0, 5, (8, 50)))
    loss = criterion(net(x), frames)  # expect
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)
GOOD = (
    EACH.replace("each.mean()", "each[known].mean()"),
    EACH.replace("each.mean()", "(each * known).sum() / known.sum()"),
    """
import torch
import torch.nn.functional as F
from torch import nn
net = nn.Conv2d(1, 3, 3, padding=1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    x = torch.randn(8, 1, 16, 16)
    mask = (x[:, 0] > 0).long()
    mask[x[:, 0] < -1] = 2
    whole = F.cross_entropy(net(x), mask)
    mask[x[:, 0].abs() < 0.1] = 255
    partly = mask.masked_fill(mask == 255, -100)
    mask[x[:, 0] > 3] = 200
    mask[mask == 200] = 1
    loss = whole + F.cross_entropy(net(x), mask, ignore_index=255) + F.cross_entropy(net(x), partly)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        answers(__name__, project, not_ignored),
        pixels_counted,
        void_pixels,
        class_passed_over,
        label_passed_over,
        sample_passed_over,
        filled_with_a_label,
        void_scored,
        void_lost,
    )
