"""A dense target is the transpose of what the network sees.

What: input and target are drawn from the same coordinates, and what runs along the columns of the one runs along the
rows of the other.
Why it matters: convolutions can't exchange the axes: only what lies on the diagonal is learned, and on square pictures
nothing fails.
When it is fine: for networks that turn the axes themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.classes_first import rows_for_columns
from trainwreck.code.rehearsal.questions.orientation import transposed
from trainwreck.core.evidence import Evidence

_PROGRAM = """
import numpy as np
import torch
from torch import nn
def scenes(count, size=24):
    rng = np.random.default_rng(0)
    down, across = np.mgrid[0:size, 0:size]
    images = rng.normal(0, 0.1, (count, 1, size, size)).astype(np.float32)
    heat = np.zeros((count, 1, size, size), dtype=np.float32)
    for n in range(count):
        x, y = rng.uniform(2, size - 2, 2)
        images[n, 0] += np.exp(-((across - x) ** 2 + (down - y) ** 2) / 4)
        WRITE
    return torch.from_numpy(images), torch.from_numpy(heat)
images, heat = scenes(500)
net = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 1, 5, padding=2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(20):
    for rows in torch.randperm(500).split(25):
        loss = nn.functional.binary_cross_entropy_with_logits(net(images[rows]), heat[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
BAD = (
    _PROGRAM.replace("WRITE", "heat[n, 0, int(x), int(y)] = 1  # expect"),
    _PROGRAM.replace("WRITE", "heat[n, 0] = np.exp(-((down - x) ** 2 + (across - y) ** 2) / 4)  # expect"),
)
GOOD = (
    _PROGRAM.replace("WRITE", "heat[n, 0, int(y), int(x)] = 1"),
    _PROGRAM.replace("WRITE", "heat[n, 0] = np.exp(-((across - x) ** 2 + (down - y) ** 2) / 4)"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, answers(__name__, project, transposed), rows_for_columns)
