"""A decoding loop with kept keys and values that gives other results than the full pass.

What: positions of new tokens that start at zero again although a cache is given; ``is_causal=True`` for a new query
over cached keys; the whole sequence fed together with the cache of its beginning.
Why it matters: teacher-forced figures are right, and what is generated is garbage after the first token.
When it is fine: with an offset by the length of the cache, and only new tokens fed.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.caching import fed_again, masks, positions, table_from_the_start
from trainwreck.code.rehearsal.questions.keeping_keys import not_handed_on, other_kind
from trainwreck.code.rehearsal.questions.stale_keys import exchanged, not_carried, stands_still
from trainwreck.core.evidence import Evidence

_MODEL = """
import torch
from torch import nn
import torch.nn.functional as F
class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
    def forward(self, x, past=None):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        causal = past is None
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return x + self.o(y), (k, v)
class Net(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.tok, self.pos = nn.Embedding(20, d), nn.Embedding(64, d)
        self.layer, self.out = Layer(d), nn.Linear(d, 20)
    def forward(self, ids, past=None):
        start = 0 if past is None else past[0].size(1)
        p = torch.arange(start, start + ids.size(1))
        h, past = self.layer(self.tok(ids) + self.pos(p), past)
        return self.out(h), past
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(200):
    ids = torch.randint(0, 20, (8, 12))
    logits, _ = net(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    ids = torch.randint(0, 20, (1, 4))
    logits, past = net(ids)
    for _ in range(8):
        new = logits[:, -1:].argmax(-1)
        ids = torch.cat([ids, new], 1)
        logits, past = net(new, past)
"""
BAD: tuple[str, ...] = (
    _MODEL.replace(
        "        p = torch.arange(start, start + ids.size(1))", "        p = torch.arange(ids.size(1))  # expect"
    ),
    _MODEL.replace("is_causal=causal)", "is_causal=True)  # expect"),
    _MODEL.replace("net(new, past)", "net(ids, past)  # expect"),
)
_TABLE = (
    _MODEL.replace("        p = torch.arange(start, start + ids.size(1))\n", "")
    .replace("self.pos(p)", "self.place[start:start + ids.size(1)]")
    .replace("def forward(self, ids, past=None):\n        start = 0 if past is None else past[0].size(1)",
             "def forward(self, ids, past=None, start=0):")
    .replace("nn.Embedding(64, d)", "nn.Embedding(64, d)\n        self.place = nn.Parameter(torch.zeros(64, d))")
)  # fmt: skip
BAD += (_TABLE.replace("net(new, past)", "net(new, past)  # expect"),)
GOOD = (
    _MODEL,
    _TABLE.replace("net(new, past)", "net(new, past, start=ids.size(1) - 1)"),
    _MODEL.replace("        logits, past = net(new, past)", "        logits, past = net(ids)"),
)


def find(project: Project) -> Iterator[Evidence]:
    asked = (positions, table_from_the_start, masks, fed_again, other_kind, not_handed_on)
    kept = (not_carried, stands_still, exchanged)
    yield from further(__name__, project, (), *asked, *kept)
