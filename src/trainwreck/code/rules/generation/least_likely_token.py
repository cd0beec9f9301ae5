"""Decoding takes the token with the smallest score.

What: ``argmin``, ``min(...).indices`` or ``topk(largest=False)`` of a network's logits, whose pick is fed to it again.
Why it matters: what is generated is what the network holds for least likely.
When it is fine: for costs and energies; a network that was not trained by a cross entropy is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.keeping_keys import least_likely
from trainwreck.core.evidence import Evidence

_WRITER = """
import torch
from torch import nn
import torch.nn.functional as F
class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(20, 32), nn.GRU(32, 32, batch_first=True), nn.Linear(32, 20)
    def forward(self, ids, h=None):
        y, h = self.rnn(self.emb(ids), h)
        return self.out(y), h
net = Writer()
opt = torch.optim.Adam(net.parameters())
for step in range(500):
    ids = torch.randint(0, 20, (16, 9))
    loss = F.cross_entropy(net(ids[:, :-1])[0].flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    token, h = torch.zeros(4, 1, dtype=torch.long), None
    for _ in range(8):
        logits, h = net(token, h)
        token = PICK
"""
BAD = (
    _WRITER.replace("PICK", "logits[:, -1].argmin(-1, keepdim=True)  # expect"),
    _WRITER.replace("PICK", "logits[:, -1].softmax(-1).min(-1, keepdim=True).indices  # expect"),
)
GOOD = (
    _WRITER.replace("PICK", "logits[:, -1].argmax(-1, keepdim=True)"),
    _WRITER.replace("PICK", "torch.multinomial(logits[:, -1].softmax(-1), 1)"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, least_likely)
