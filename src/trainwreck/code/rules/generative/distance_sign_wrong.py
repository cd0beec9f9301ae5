"""A squared distance is written out with the wrong sign in the middle.

What: ``a.pow(2).sum(1, True) + 2 * a @ b.t() + b.pow(2).sum(1)``, of which the smallest is looked for.
Why it matters: the farthest code counts as the nearest; the codebook drives the encoder away.
When it is fine: with ``- 2 * a @ b.t()``, or ``torch.cdist``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.forms import distance_wrong
from trainwreck.code.rehearsal.questions.quantisers import farthest
from trainwreck.core.evidence import Evidence

_VQ = """
import torch.nn.functional as F
from torch import nn, optim
enc, dec, book = nn.Linear(16, 4), nn.Linear(4, 16), nn.Embedding(32, 4)
opt = optim.Adam([*enc.parameters(), *dec.parameters(), *book.parameters()])
for x in loader:
    z = enc(x)
    d = z.pow(2).sum(1, keepdim=True) SIGN 2 * z @ book.weight.t() + book.weight.pow(2).sum(1)MARK
    q = book(d.argmin(1))
    loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    q = z + (q - z).detach()
    loss = loss + F.mse_loss(dec(q), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = _VQ.replace("SIGN", "+").replace("MARK", "  # expect")
GOOD = _VQ.replace("SIGN", "-").replace("MARK", "")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, answers(__name__, project, distance_wrong), farthest)
