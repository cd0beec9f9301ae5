"""A causal mask is made and never used.

What: the attention registers a lower-triangular mask, and its ``forward`` applies softmax without it.
Why it matters: every position sees the token it has to predict; the loss is far too good, generation is poor.
When it is fine: with ``is_causal=True``, or where a mask is passed in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import source
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.tokens import cut_ahead, sees_the_future
from trainwreck.code.rehearsal.questions.visibility import future_in_sight
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import loss_kind, losses, modules
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(n, n)))
    def forward(self, q, k, v):
        att = q @ k.transpose(-2, -1)
        att = att.softmax(-1)  # expect
        return att @ v
""",
    """
import torch
import torch.nn.functional as F
from torch import nn
class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d) for _ in range(3))
    def forward(self, x):
        a = (self.q(x) @ self.k(x).transpose(1, 2) / 8).softmax(-1)  # expect
        return a @ self.v(x)
class LM(nn.Module):
    def __init__(self, v, d, t):
        super().__init__()
        self.tok, self.pos = nn.Embedding(v, d), nn.Embedding(t, d)
        self.attn, self.out = Attention(d), nn.Linear(d, v)
    def forward(self, x):
        return self.out(self.attn(self.tok(x) + self.pos(torch.arange(x.size(1)))))
def train(loader, opt):
    model = LM(30, 32, 16)
    for s in loader:
        x, y = s[:, :-1], s[:, 1:]
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(n, n)))
    def forward(self, q, k, v):
        att = (q @ k.transpose(-2, -1)).masked_fill(self.mask == 0, float("-inf"))
        return att.softmax(-1) @ v
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from further(__name__, project, answers(__name__, project, sees_the_future), future_in_sight, cut_ahead)


def _written(project: Project) -> Iterator[Evidence]:
    found = list(_made_and_unused(project))
    yield from found or _none_at_all(project)


MASKS = pattern(r"tril|triu|causal|subsequent|attn_mask|src_mask|\bmask\b|masked_fill|\binf\b|-1e\d", re.IGNORECASE)
HELPERS = pattern(r"tril|triu|causal|subsequent")
"""Words of masks that a function outside of the modules makes."""
NO_DECODER = pattern(r"bert|encoder_only|\bmlm\b|autoenc|diffus|seq2seq|vit\b|patch", re.IGNORECASE)


def _none_at_all(project: Project) -> Iterator[Evidence]:
    """A network of self-attention that is trained on the next token, in a program without any mask."""
    code = "\n".join(written(c.node) for c in project.classes if project.is_a(c, "Module"))
    if MASKS.search(code) or HELPERS.search(source(project)) or NO_DECODER.search(code) or "Embedding(" not in code:
        return
    if re.search(r"\b(LSTM|GRU|RNN)\b", code) or not _next_token(project):
        return
    for owner in modules(project):
        for method in owner.children:
            if method.kind != "function" or not _self_attention(written(method.node)):
                continue
            for node in project.within(method, ast.Call):
                if isinstance(node, ast.Call) and last_name(node.func) in ("softmax", "scaled_dot_product_attention"):
                    text = "attention over tokens to come: the network is trained on the next token without a mask"
                    yield sighting(__name__, (node, method), text)
                    return


def _self_attention(text: str) -> bool:
    scored = re.search(
        r"@ \w+(\(\w+\))?\.transpose\(|@ self\.\w+\(\w+\)\.transpose|matmul\(|einsum\(|scaled_dot_product_attention",
        text,
    )
    return bool(scored) and ("softmax" in text or "scaled_dot_product" in text)


def _next_token(project: Project) -> bool:
    """True if the inputs end one before, or the targets start one after: ``x[:, :-1]``, ``x[:, 1:]``, ``i + 1``."""
    for loss in losses(project):
        target = loss.argument("target", 1)
        if target is None or not loss_kind(project, loss) & {"crossentropy", "nll"}:
            continue
        for step in back(project, target, loss.scope):
            if isinstance(step.node, ast.Subscript) and NEXT.search(written(step.node)):
                return True
    return False


NEXT = pattern(r"\[(:, |\.\.\., )?1:(, :)?\]$|\[\w+ \+ 1:")


def _made_and_unused(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        name = _mask(project, owner)
        forward = owner.method("forward")
        if not name or forward is None:
            continue
        used = any(
            isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Load)
            for walked in project.walked.values()
            for n in ast.walk(walked.top.module.tree)
        )
        text = written(forward.node)
        if used or "is_causal" in text or "mask" in " ".join(forward.params):
            continue
        for node in project.within(forward, ast.Call):
            if isinstance(node, ast.Call) and last_name(node.func) in ("softmax", "scaled_dot_product_attention"):
                yield sighting(__name__, (node, forward), f"the causal mask self.{name} is made and not applied here")
                break


def _mask(project: Project, owner: Scope) -> str:
    """Name of a buffer or attribute that holds a triangular mask."""
    for call in project.calls("register_buffer"):
        if call.scope.owner is owner and len(call.node.args) >= 2 and _triangular(call.node.args[1]):
            first = call.node.args[0]
            return str(first.value) if isinstance(first, ast.Constant) else ""
    for name, bindings in owner.attributes.items():
        if any(b.value is not None and _triangular(b.value) for b in bindings):
            return name
    return ""


def _triangular(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("tril", "triu") for n in ast.walk(node))
