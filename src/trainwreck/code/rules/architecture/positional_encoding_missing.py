"""Attention without positions.

What: a module embeds tokens, runs them through ``TransformerEncoder`` layers and adds no position in any way.
Why it matters: attention sees a set: the order of the tokens makes no difference.
When it is fine: for sets and graphs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import source, text_of
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.positions import by_sample, left_out, nowhere
from trainwreck.code.rehearsal.questions.same_tokens import same_everywhere
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import modules
from trainwreck.code.spine import call_ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
class Classifier(nn.Module):
    def __init__(self, vocab, d=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        layer = nn.TransformerEncoderLayer(d, 4, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)  # expect
        self.head = nn.Linear(d, 2)
    def forward(self, tokens):
        return self.head(self.enc(self.emb(tokens)).mean(1))
""",
    """
import torch
from torch import nn
class LM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.pos = nn.Embedding(64, d)
        self.attn, self.out = nn.MultiheadAttention(d, 4, batch_first=True), nn.Linear(d, v)
    def forward(self, x):
        h = self.tok(x)  # expect
        mask = torch.triu(torch.ones(x.size(1), x.size(1)), 1).bool()
        return self.out(self.attn(h, h, h, attn_mask=mask)[0])
""",
)
GOOD = """
from torch import nn
class Classifier(nn.Module):
    def __init__(self, vocab, d=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(512, d)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4), 2)
    def forward(self, tokens):
        return self.enc(self.emb(tokens) + self.pos.weight)
class Recurrent(nn.Module):
    def __init__(self, vocab, d=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.LSTM(d, d)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4), 2)
    def forward(self, tokens):
        return self.enc(self.rnn(self.emb(tokens))[0])
class Tagger(nn.Module):
    def __init__(self, vocab, d=64):
        super().__init__()
        self.emb, self.places = nn.Embedding(vocab, d), nn.Parameter(torch.randn(20, d))
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4), 2)
    def forward(self, tokens):
        return self.enc(self.emb(tokens) + self.places)
"""
ATTENDS = pattern(
    r"MultiheadAttention|TransformerEncoder|scaled_dot_product_attention|\battn\b|attention", re.IGNORECASE
)
PLACE = pattern(r"pos|rope|rotary|alibi|arange|sin\(|wpe|time|LSTM|GRU|Conv|freqs|relative", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    found = list(_nowhere(project)) or list(_made_and_unused(project))
    yield from further(__name__, project, found, left_out, nowhere, same_everywhere, by_sample)


def _made_and_unused(project: Project) -> Iterator[Evidence]:
    """An embedding of positions that is made and never added."""
    for owner in modules(project):
        forward = owner.method("forward")
        attends = forward is not None and ATTENDS.search(source(project))
        if forward is None or not (_embeds(owner, forward) or attends):
            continue
        for name, bindings in owner.attributes.items():
            if not re.match(r"(pos(ition(s|al)?)?|wpe|pe)(_?(emb\w*|enc\w*|embedding|encoding))?$", name):
                continue
            read = any(
                isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Load)
                for walked in project.walked.values()
                for n in ast.walk(walked.top.module.tree)
            )
            made = [b for b in bindings if isinstance(b.value, ast.Call)]
            if made and not read:
                text = f"self.{name} is made and never added: the order of the tokens makes no difference"
                place = _entrance(owner, forward) or _joined(forward) or (made[0].node, made[0].scope)
                yield sighting(__name__, place, text)


def _joined(forward: Scope) -> tuple[ast.AST, Scope] | None:
    """Where patches and the token of the class are put behind one another, as it is done before positions are added."""
    calls = [n for n in ast.walk(forward.node) if isinstance(n, ast.Call) and last_name(n.func) in ("cat", "concat")]
    return (calls[0], forward) if len(calls) == 1 else None


def _embeds(owner: Scope, forward: Scope) -> bool:
    """True if the forward itself looks tokens up in an embedding that is not one of positions."""
    return _entrance(owner, forward) is not None


def _entrance(owner: Scope, forward: Scope) -> tuple[ast.AST, Scope] | None:
    """Where the forward looks tokens up: there a position is to be added."""
    tables = [
        name
        for name, bindings in owner.attributes.items()
        if not name.startswith(("pos", "wpe", "pe"))
        and any(isinstance(b.value, ast.Call) and last_name(b.value.func) == "Embedding" for b in bindings)
    ]
    wanted = {f"self.{name}" for name in tables}
    calls = (n for n in ast.walk(forward.node) if isinstance(n, ast.Call) and written(n.func) in wanted)
    return next(((call, forward) for call in calls), None)


def _nowhere(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        text = text_of(project, owner)
        forward = owner.method("forward")
        if "TransformerEncoder(" not in text or "Embedding(" not in text or forward is None or PLACE.search(text):
            continue
        layers = [
            n
            for n, b in owner.attributes.items()
            if any(isinstance(x.value, ast.Call) and last_name(x.value.func) == "TransformerEncoder" for x in b)
        ]
        embeddings = [
            n
            for n, b in owner.attributes.items()
            if any(isinstance(x.value, ast.Call) and last_name(x.value.func) == "Embedding" for x in b)
        ]
        for name in layers:
            if _direct(project, forward, name, embeddings) or _chained(project, forward, name, embeddings):
                binding = owner.attributes[name][0]
                yield sighting(
                    __name__,
                    (binding.node, binding.scope),
                    "tokens reach attention without any position: their order makes no difference",
                )


def _direct(project: Project, forward: Scope, name: str, embeddings: list[str]) -> bool:
    """True where the encoder is given what an embedding gives, and nothing is added to it."""
    for call in project.calls_by_scope.get(forward, ()):
        if written(call.node.func) == f"self.{name}" and call.node.args:
            given = call.node.args[0]
            if isinstance(given, ast.Call) and written(given.func) in [f"self.{e}" for e in embeddings]:
                return True
    return False


def _chained(project: Project, forward: Scope, name: str, embeddings: list[str]) -> bool:
    for call in project.calls_by_scope.get(forward, ()):
        if written(call.node.func) == f"self.{name}" and call.node.args:
            found = call_ends(project, call.node.args[0], forward)
            if found and all(written(c.node.func) in [f"self.{e}" for e in embeddings] for c in found):
                return True
    return False
