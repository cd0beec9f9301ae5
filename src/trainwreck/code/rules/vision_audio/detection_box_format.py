"""Boxes of two layouts are compared with each other.

What: the loss compares the network's boxes with the given ones as they are, and the evaluation converts one of the two
(centre and size to corners) before their overlap is computed; or the loss converts what the evaluation does not.
Why it matters: one of the two reads a centre as a corner: the loss falls and no box is where it should be.
When it is fine: where both are converted, or the network gives other boxes there.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.background import met_by_a_class
from trainwreck.code.rehearsal.questions.box_functions import offsets_not_undone, overlap_worked_out, worst_kept
from trainwreck.code.rehearsal.questions.box_targets import taught_unconverted
from trainwreck.code.rehearsal.questions.boxes import two_layouts
from trainwreck.code.rehearsal.questions.decoded_boxes import decoded_centres
from trainwreck.code.rehearsal.questions.overlaps import corner_for_centre, overlap_of_centres
from trainwreck.code.rehearsal.questions.round_trip import read_in_another_layout
from trainwreck.code.rehearsal.questions.unions import overlap_wrong, turned_box_wrong
from trainwreck.core.evidence import Evidence

_START = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
def corners(b):
    x, y, w, h = b.unbind(-1)
    return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1)
def centre(b):
    return torch.cat([(b[:, :2] + b[:, 2:]) / 2, b[:, 2:] - b[:, :2]], -1)
def overlap(p, q):
    side = (torch.minimum(p[:, 2:], q[:, 2:]) - torch.maximum(p[:, :2], q[:, :2])).clamp(min=0)
    return side.prod(1)
data = TensorDataset(torch.randn(400, 32), torch.rand(400, 4))
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
opt = torch.optim.Adam(net.parameters())
for x, box in DataLoader(data, 20, shuffle=True):
    opt.zero_grad()
"""
_END = """
    opt.step()
net.eval()
with torch.no_grad():
    for x, box in DataLoader(data, 20):
"""
BAD = (
    f"{_START}    nn.functional.l1_loss(net(x), box).backward()  # expect{_END}"
    "        print(overlap(corners(net(x)), box).mean())\n",
    f"{_START}    nn.functional.mse_loss(net(x), centre(box)).backward()  # expect{_END}"
    "        print(overlap(net(x), box).mean())\n",
)
GOOD = (
    f"{_START}    nn.functional.l1_loss(net(x), centre(box)).backward(){_END}"
    "        print(overlap(corners(net(x)), box).mean())\n",
    f"{_START}    nn.functional.l1_loss(net(x), box).backward(){_END}"
    "        print(overlap(corners(net(x)), corners(box)).mean())\n",
)


def find(project: Project) -> Iterator[Evidence]:
    asked = (two_layouts, overlap_of_centres, corner_for_centre, decoded_centres, overlap_wrong, turned_box_wrong)
    found = list(further(__name__, project, (), *asked, read_in_another_layout))
    yield from found or further(
        __name__, project, (), overlap_worked_out, offsets_not_undone, met_by_a_class, worst_kept, taught_unconverted
    )
