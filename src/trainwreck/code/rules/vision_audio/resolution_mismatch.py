"""Images are given to a network in another size than it was trained with.

What: the evaluation resizes its images (``F.interpolate``, ``resize``), and the training does not, or to another size.
Why it matters: objects look larger or smaller than those that the network knows, and pooled features have other
statistics.
When it is fine: for a test at several sizes, the training's among them; that is not told, nor an output that is only
shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.resized import resized_there
from trainwreck.code.rehearsal.questions.transforms import other_size
from trainwreck.core.evidence import Evidence

_SCRIPT = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
def images(n):
    return TensorDataset(torch.randn(n, 1, 16, 16), torch.randint(0, 4, (n,)))
net = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))
opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(images(400), 20, shuffle=True):
    loss = F.cross_entropy(net(TRAIN), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    for x, y in DataLoader(images(100), 50):
        TEST
        print((net(x).argmax(1) == y).float().mean())
"""
BAD = (
    _SCRIPT.replace("TRAIN", "x").replace("TEST", "x = F.interpolate(x, size=32)  # expect"),
    _SCRIPT.replace("TRAIN", "F.interpolate(x, size=24)").replace("TEST", "x = F.interpolate(x, size=32)  # expect"),
)
GOOD = (
    _SCRIPT.replace("TRAIN", "x").replace("TEST", "x = x * 1.0"),
    _SCRIPT.replace("TRAIN", "F.interpolate(x, size=32)").replace("TEST", "x = F.interpolate(x, size=32)"),
    _SCRIPT.replace("TRAIN", "x").replace("TEST", "z = net(F.interpolate(x, scale_factor=2))"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, answers(__name__, project, resized_there), other_size)
