"""The loss of the quantiser is never used.

What: the commitment (or codebook) loss that a quantiser returns is unpacked into a name that nothing reads.
Why it matters: encoder and codebook drift apart, and few codes stay in use.
When it is fine: for quantisers without such a loss (FSQ, LFQ).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
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
TERM = re.compile(r"commit|(^|_)vq_?loss|codebook_?loss|quant\w*_?loss|embed_?loss", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
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
