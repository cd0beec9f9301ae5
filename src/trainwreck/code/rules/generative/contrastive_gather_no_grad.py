"""Embeddings of all processes are gathered, and no gradient comes back through them.

What: ``all_gather`` fills tensors that hang in no graph, and they are compared with the own embeddings as they are.
Why it matters: one side of each pair never learns from the negatives, and the loss is not that of the large batch.
When it is fine: where the own part is put back into the list, or with ``torch.distributed.nn.all_gather``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.gathering import without_gradient
from trainwreck.core.evidence import Evidence

_SCRIPT = """
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
def together(z):
    parts = [torch.zeros_like(z) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, z)
    parts[dist.get_rank()] = z
    return torch.cat(parts)
def stir(x): return x + 0.1 * torch.randn_like(x)
net = nn.Linear(20, 8)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(100):
    x = torch.randn(16, 20)
    a, b = F.normalize(net(stir(x)), dim=1), F.normalize(net(stir(x)), dim=1)
    loss = F.cross_entropy(a @ together(b).t() / 0.1, torch.arange(16) + 16 * dist.get_rank())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    _SCRIPT.replace("dist.all_gather(parts, z)\n    parts[dist.get_rank()] = z", "dist.all_gather(parts, z)  # expect"),
    _SCRIPT.replace(
        "dist.all_gather(parts, z)\n    parts[dist.get_rank()] = z", "dist.all_gather(parts, z)  # expect"
    ).replace("zeros_like(z)", "empty_like(z)"),
    _SCRIPT.replace("dist.all_gather(parts, z)\n    parts[dist.get_rank()] = z", "dist.all_gather(parts, z)  # expect")
    .replace("a @ together(b).t() / 0.1", "torch.einsum('id,jd->ij', a, together(b)) / 0.1"),
)  # fmt: skip
GOOD = (
    _SCRIPT,
    _SCRIPT.replace(
        "dist.all_gather(parts, z)\n    parts[dist.get_rank()] = z",
        "from torch.distributed.nn import all_gather\n    parts = all_gather(z)",
    ),
    _SCRIPT.replace("a @ together(b).t() / 0.1", "a @ b.t() / 0.1").replace(
        "opt.step()", "opt.step()\n    print(together(b).std())"
    ),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), without_gradient)
