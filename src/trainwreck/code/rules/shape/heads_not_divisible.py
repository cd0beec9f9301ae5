"""The embedding size is no multiple of the number of heads.

What: ``MultiheadAttention(d, h)`` or a Transformer layer with literal sizes where ``d % h`` is not 0.
Why it matters: the constructor raises.
When it is fine: never.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    is_torch,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
attention = nn.MultiheadAttention(100, 8)  # expect
""",
    """
import torch
D, H = 130, 4
layer = torch.nn.TransformerEncoderLayer(d_model=D, nhead=H, batch_first=True)  # expect
""",
    """
from torch import nn
class Net(nn.Module):
    def __init__(self, d=96, heads=7):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim=d, num_heads=heads)  # expect
""",
)
GOOD = """
from torch import nn
def build(d, h):
    return nn.MultiheadAttention(128, 8), nn.TransformerEncoderLayer(d, h), nn.Transformer(512, 8)
"""
LAYERS = {
    "MultiheadAttention": ("embed_dim", "num_heads"),
    "TransformerEncoderLayer": ("d_model", "nhead"),
    "TransformerDecoderLayer": ("d_model", "nhead"),
    "Transformer": ("d_model", "nhead"),
}


def find(project: Project) -> Iterator[Evidence]:
    for name, (size, heads) in LAYERS.items():
        for call in project.calls(name):
            if not is_torch(project, call):
                continue
            width, count = only(project, option(project, call, size, 0)), only(project, option(project, call, heads, 1))
            if isinstance(width, int) and isinstance(count, int) and count > 0 and width % count:
                yield sighting(__name__, call, f"{width} is no multiple of {count} heads")
