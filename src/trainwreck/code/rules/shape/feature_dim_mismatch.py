"""A layer is declared for another width than it gets.

What: two layers follow each other in a ``Sequential`` or in ``forward``, both with literal widths, and the second
expects another number of features or channels than the first gives; or a sum adds two widths.
Why it matters: the first forward pass raises.
When it is fine: where something between them changes the width.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.shapes import clashes
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
model = nn.Sequential(
    nn.Linear(10, 64),
    nn.ReLU(),
    nn.Linear(32, 2),  # expect
)
""",
    """
import torch
import torch.nn as nn
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(16, 64, 3)  # expect
        self.head = nn.Linear(64, 10)
    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, 2)
        x = self.conv2(x)
        return self.head(x.mean([2, 3]))
""",
    """
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(64, 64, 3, padding=1)
        self.b = nn.Conv2d(64, 128, 3, padding=1)
    def forward(self, x):
        h = self.a(x)
        return h + self.b(h)  # expect
""",
    """
from torch import nn
features = nn.Sequential(nn.Conv2d(3, 16, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 5))  # expect
""",
)
GOOD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self, width, deep=False):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.up = nn.Linear(32, 64)
        self.down = nn.Linear(64, 32)
        self.conv = nn.Conv2d(3, 16, 3)
        self.head = nn.Linear(16 * 5 * 5, 10)
        self.any = nn.Linear(width, 7)
        self.one = nn.Linear(32, 1)
    def forward(self, x, image):
        h = self.embed(x)
        h = h + self.down(F.relu(self.up(h)))
        h = h + self.one(h)
        g = torch.cat([h, h], -1)
        g = self.up(g.view(-1, 32))
        y = self.conv(image)
        if x is None:
            y = self.any(y)
        return self.any(g), self.head(y.flatten(1)), self.up(y)
block = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
other = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(800, 5), nn.Unflatten(1, (5, 1)), nn.Linear(1, 3))
"""


def find(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for clash in clashes(project):
        place = clash.place
        node = place.node if isinstance(place, Call) else place[0]
        if id(node) in told:
            continue
        told.add(id(node))
        text = f"expects {clash.expected} {clash.what}, and gets {clash.got} from {written(clash.by.node)[:50]}"
        yield sighting(__name__, place, text, proof=[clash.by])
