"""An axis is cut into parts that do not divide it.

What: an axis of known size is split by a pattern of einops, into patches, windows or heads, and the size is no
multiple of the part; or a map that was halved and enlarged again meets one that was not, some pixels larger.
Why it matters: the first forward pass raises.
When it is fine: where the input is padded or resized to a multiple before.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.misfits import clashes
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from einops import rearrange
x = torch.randn(2, 3, 30, 30)
patches = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=8, q=8)  # expect
""",
    """
import torch, torch.nn as nn
from einops import rearrange
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.q = heads, nn.Linear(dim, dim)
    def forward(self, x):
        return rearrange(self.q(x), "b n (h d) -> b h n d", h=self.heads)  # expect
out = Attention(100, 8)(torch.randn(2, 10, 100))
""",
    """
import einops, torch
def pool(x, window):
    return einops.reduce(x, "b (t w) d -> b t d", "mean", w=window)  # expect
def main():
    return pool(torch.zeros(4, 100, 16), 8)
""",
    """
import torch
from torch import nn
class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
    def forward(self, x):
        a = self.a(x)
        b = self.b(nn.functional.max_pool2d(a, 2))
        return torch.cat([a, self.up(b)], dim=1)  # expect
out = Unet()(torch.randn(2, 1, 45, 64))
""",
)
GOOD = """
import torch
from einops import rearrange, reduce, repeat
def main(x, heads):
    y = torch.randn(2, 3, 32, 32)
    a = rearrange(y, "b c (h p) (w q) -> b (h w) (p q c)", p=8, q=8)
    b = rearrange(a, "b n (h d) -> b h n d", h=8)
    c = rearrange(x, "b n (h d) -> b h n d", h=heads)
    d = reduce(y, "b c h w -> b c", "mean")
    e = repeat(d, "b c -> b k c", k=3)
    f = rearrange(y, "... c h w -> ... (h w) c")
    return a, b, c, d, e, f
"""


def find(project: Project) -> Iterator[Evidence]:
    for clash in clashes(project, "divide"):
        yield sighting(__name__, clash.place, clash.text, proof=clash.by)
