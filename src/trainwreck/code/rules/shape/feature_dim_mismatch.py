"""A layer is declared for another width than it gets.

What: two layers follow each other in a ``Sequential`` or in ``forward``, both with literal widths, and the second
expects another number of features or channels than the first gives; or a sum adds two widths.
Why it matters: the first forward pass raises.
When it is fine: where something between them changes the width.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.misfits import clashes
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.declared import other_width
from trainwreck.code.rule import sighting
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
    """
import torch, torch.nn as nn, torch.nn.functional as F
class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.f = nn.Linear(16 * 5 * 5, 10)  # expect
    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.f(x.flatten(1))
out = Lenet()(torch.randn(8, 1, 28, 28))
""",
    """
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.fc = nn.Linear(8 * 14 * 14, 10)
    def forward(self, x):
        x = F.max_pool2d(self.conv(x), 2)
        return self.fc(x.view(-1, 8 * 14 * 14))  # expect
def main():
    data = datasets.MNIST("d", transform=transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.1, 0.3)]))
    model = Net()
    for x, y in DataLoader(data, batch_size=64, shuffle=True):
        model(x)
""",
    """
import torch
from torch import nn
def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())
class Unet(nn.Module):
    def __init__(self, widths=(8, 16)):
        super().__init__()
        self.down, self.mid = block(1, widths[0]), block(widths[0], widths[1])
        self.up = nn.ConvTranspose2d(widths[1], widths[0], 2, 2)
        self.out = nn.Conv2d(widths[0], 2, 1)  # expect
    def forward(self, x):
        a = self.down(x)
        b = self.mid(nn.functional.max_pool2d(a, 2))
        return self.out(torch.cat([a, self.up(b)], dim=1))
net = Unet()
""",
    """
import torch
from einops import rearrange
def split(x):
    return rearrange(x, "b n (h d) -> b h n d", h=4)  # expect
out = split(torch.randn(2, 64))
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


KINDS = ("features", "channels", "sum", "join", "product", "reshape", "pattern")


def find(project: Project) -> Iterator[Evidence]:
    found = [sighting(__name__, clash.place, clash.text, proof=clash.by) for clash in clashes(project, *KINDS)]
    yield from further(__name__, project, found, other_width)
