"""The loss of the quantiser is never used.

What: the commitment (or codebook) loss that a quantiser returns is unpacked into a name that nothing reads.
Why it matters: encoder and codebook drift apart, and few codes stay in use.
When it is fine: for quantisers without such a loss (FSQ, LFQ).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import source
from trainwreck.code.objective import objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.quantising import uncommitted
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.terms import detached_pair
from trainwreck.core.evidence import Evidence

BAD = (
    """
from vector_quantize_pytorch import VectorQuantize
class Model:
    def __init__(self):
        self.vq = VectorQuantize(dim=64, codebook_size=512)
    def step(self, x, criterion):
        q, idx, commit_loss = self.vq(self.enc(x))  # expect
        loss = criterion(self.dec(q), x)
        loss.backward()
""",
    """
def train(encoder, quantizer, decoder, loader, opt, mse):
    for x in loader:
        z, vq_loss, perplexity = quantizer(encoder(x))  # expect
        loss = mse(decoder(z), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
import torch.nn.functional as F
from torch import nn
class VQ(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.codebook = nn.Embedding(k, d)
    def forward(self, z):
        idx = torch.cdist(z, self.codebook.weight).argmin(1)
        q = self.codebook(idx)
        loss = F.mse_loss(q, z.detach())  # expect
        return z + (q - z).detach(), loss
class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.vq, self.dec = nn.Linear(8, 4), VQ(16, 4), nn.Linear(4, 8)
    def forward(self, x):
        q, vq_loss = self.vq(self.enc(x))
        return self.dec(q), vq_loss
def train(loader, opt):
    model = AE()
    for x in loader:
        rec, vq_loss = model(x)
        loss = F.mse_loss(rec, x) + vq_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
def train(encoder, quantizer, decoder, loader, opt, mse):
    for x in loader:
        z, vq_loss, perplexity = quantizer(encoder(x))
        loss = mse(decoder(z), x) + vq_loss
        loss.backward()
        opt.step()
def encode(encoder, quantizer, x):
    z, commit_loss, _ = quantizer(encoder(x))
    return z
"""
TERM = pattern(r"commit|(^|_)vq_?loss|codebook_?loss|quant\w*_?loss|embed_?loss", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), uncommitted)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _never_added(project)
    yield from _one_sided(project)


def _one_sided(project: Project) -> Iterator[Evidence]:
    """The codebook is pulled to the encoder, and nothing pulls the encoder to the codebook."""
    text = source(project)
    if not re.search(r"argmin|\.min\(", text) or re.search(r"\bema\b|cluster_size|lerp_|decay", text, re.IGNORECASE):
        return
    for call, terms in objectives(project):
        pairs = [(t, pair) for t in terms if (pair := detached_pair(t)) is not None]
        if not pairs or len({(p[0], p[1]) for _, p in pairs}) != 1:
            continue
        term, (cut, live) = pairs[0]
        quantised = _looked_up(term.scope)
        if live in quantised and cut not in quantised and f"({live} - {cut}).detach()" in written(term.scope.node):
            place = (project.statement(term.node, term.scope), term.scope)
            yield sighting(
                __name__, place, f"nothing pulls {cut} to {live}: the commitment term is missing", proof=[call]
            )
            return


def _looked_up(scope: Scope) -> set[str]:
    """Names of entries of a codebook: bound to a lookup by the index of the nearest, and their reshaped forms."""
    found: set[str] = set()
    for _ in range(2):
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                text = written(binding.value)
                if re.search(r"code|embed|\bcb\b|\.e\b|weight", text) and re.search(r"\(\w+\)|\[\w+\]", text):
                    found.add(name)
                if any(re.match(rf"{re.escape(f)}\.(view|reshape|permute|transpose)", text) for f in found):
                    found.add(name)
        found -= {n for n in found if any("argmin" in written(b.value) for b in scope.bindings[n])}
    return found


def _never_added(project: Project) -> Iterator[Evidence]:
    for scope in {c.scope for c in project.calls("backward")}:
        read = {n.id for n in ast.walk(scope.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        for node in project.within(scope, ast.Assign):
            assert isinstance(node, ast.Assign)
            target = node.targets[0]
            if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Call):
                continue
            lost = [e.id for e in target.elts if isinstance(e, ast.Name) and TERM.search(e.id) and e.id not in read]
            if lost:
                yield sighting(__name__, (node, scope), f"{lost[0]} is returned here and never added to the loss")
