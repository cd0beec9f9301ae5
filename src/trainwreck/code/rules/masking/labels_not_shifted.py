"""The target of a next-token loss is the input itself.

What: an autoregressive network (causal mask or one-directional recurrence over token embeddings) is compared,
position by position, with the very tokens that it was given: the same slice is input and target, or logits and tokens
meet unshifted in the loss.
Why it matters: the network copies its input; the loss goes to zero and nothing is learnt about the next token.
When it is fine: masked language models, auto-encoders, tagging, models that shift inside (``labels=`` of
transformers).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import source, text_of
from trainwreck.code.flow import Step, back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.tokens import last_left_out, not_shifted, shifts
from trainwreck.code.rehearsal.questions.walked import same_token
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import is_module, loss_kind, losses
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
from torch import nn
class TinyLM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)))
        self.head = nn.Linear(d, v)
    def forward(self, idx):
        return self.head(self.tok(idx))
def batch(data, n):
    ix = torch.randint(0, len(data) - n - 1, (16,))
    x = torch.stack([data[i : i + n] for i in ix])
    y = torch.stack([data[i : i + n] for i in ix])  # expect
    return x, y
def main(data):
    model = TinyLM(20, 8)
    for _ in range(10):
        x, y = batch(data, 8)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
""",
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Windows(Dataset):
    def __init__(self, ids, width):
        self.ids, self.width = ids, width
    def __getitem__(self, k):
        chunk = self.ids[k : k + self.width + 1]
        return chunk[:-1], chunk[:-1]  # expect
class CharModel(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.emb = nn.Embedding(v, 8)
        self.gru = nn.GRU(8, 16, batch_first=True)
        self.out = nn.Linear(16, v)
    def forward(self, ids, state=None):
        h, state = self.gru(self.emb(ids), state)
        return self.out(h), state
def main(ids):
    loader = DataLoader(Windows(ids, 8), 4)
    model, criterion = CharModel(9), nn.CrossEntropyLoss()
    for x, y in loader:
        logits, _ = model(x)
        loss = criterion(logits.transpose(1, 2), y)
        loss.backward()
""",
    """
import torch.nn.functional as F
from torch import nn
class Decoder(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.wte = nn.Embedding(v, 32)
        self.lm_head = nn.Linear(32, v)
    def forward(self, tokens):
        return self.lm_head(F.scaled_dot_product_attention(self.wte(tokens), 1, 1, is_causal=True))
class Trainer:
    def __init__(self):
        self.model = Decoder(50)
    def step(self, tokens):
        logits = self.model(tokens)
        loss = F.cross_entropy(logits.view(-1, 50), tokens.view(-1))  # expect
        loss.backward()
""",
)
GOOD = (
    """
import torch
import torch.nn.functional as F
from torch import nn
class TinyLM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)))
        self.head = nn.Linear(d, v)
    def forward(self, idx):
        return self.head(self.tok(idx))
def batch(data, n):
    ix = torch.randint(0, len(data) - n - 1, (16,))
    x = torch.stack([data[i : i + n] for i in ix])
    y = torch.stack([data[i + 1 : i + n + 1] for i in ix])
    return x, y
def main(data):
    model = TinyLM(20, 8)
    x, y = batch(data, 8)
    F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
    logits = model(x)
    F.cross_entropy(logits[:, :-1].flatten(0, 1), x[:, 1:].flatten()).backward()
    shift_logits, shift_labels = logits[..., :-1, :], x[..., 1:]
    F.cross_entropy(shift_logits.reshape(-1, 20), shift_labels.reshape(-1)).backward()
    inp, target = x[:, :-1], x[:, 1:]
    F.cross_entropy(model(inp).transpose(1, 2), target).backward()
""",
    """
import torch.nn.functional as F
from torch import nn
class Autoencoder(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.emb = nn.Embedding(v, 8)
        self.enc = nn.GRU(8, 16, batch_first=True)
        self.out = nn.Linear(16, v)
    def forward(self, ids):
        return self.out(self.enc(self.emb(ids))[0])
class Tagger(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.emb = nn.Embedding(v, 8)
        self.lstm = nn.LSTM(8, 16, bidirectional=True)
    def forward(self, ids):
        return self.lstm(self.emb(ids))[0]
def main(loader):
    model, tagger = Autoencoder(9), Tagger(5)
    for ids, tags in loader:
        F.cross_entropy(model(ids).transpose(1, 2), ids).backward()
        F.cross_entropy(tagger(ids).transpose(1, 2), tags).backward()
""",
    """
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, i):
        return self.rows[i][0], self.rows[i][1]
class Net(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.emb, self.gru, self.out = nn.Embedding(v, 8), nn.GRU(8, 8), nn.Linear(8, 3)
    def forward(self, ids):
        return self.out(self.gru(self.emb(ids))[0][:, -1])
def main(rows):
    net = Net(9)
    for ids, label in DataLoader(Rows(rows[:50]), 8):
        F.cross_entropy(net(ids), label).backward()
""",
)
CAUSAL = pattern(r"tril|triu|causal|subsequent|\bGRU\b|\bLSTM\b|\bRNN\b|GRUCell|LSTMCell")
NOT_NEXT = pattern(
    r"autoenc|auto_enc|reconstr|bidirectional=True|\bmlm\b|mask_token|denois|diffus|vae\b|seq2seq", re.IGNORECASE
)
SHIFTS = pattern(r"\[[^\]]*(:\s*-1|1\s*:)[^\]]*\]|roll\(|shift")


def find(project: Project) -> Iterator[Evidence]:
    reconstructs = NOT_NEXT.search(source(project)) is not None
    found = list(answers(__name__, project, last_left_out if reconstructs else not_shifted))
    found = found or list(answers(__name__, project, same_token))
    yield from found
    if not found and not any(shifts(run) for run in rehearsals(project)):
        yield from _written(project)


def _fed_shifted(project: Project, call: Call) -> bool:
    """True for ``net(ids, shifted)``: the first argument is the source, and the decoder gets the tokens before."""
    others = [*call.node.args[1:], *(k.value for k in call.node.keywords)]
    return any(SHIFTS.search(written(node)) for other in others for node, _ in ends(project, other, call.scope))


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for loss in losses(project):
        target, logits = loss.argument("target", 1), loss.argument("input", 0)
        if target is None or logits is None or not loss_kind(project, loss) & {"crossentropy", "nll"}:
            continue
        network = _network(project, logits, loss.scope)
        if network is None or not _autoregressive(project, network[1]):
            continue
        call = network[0]
        fed = call.node.args[0] if call.node.args else None
        if fed is None or SHIFTS.search(written(logits)) or _fed_shifted(project, call):
            continue
        place = _same(project, (fed, call.scope), (target, loss.scope))
        if place is not None and id(place[0]) not in told:
            told.add(id(place[0]))
            yield sighting(
                __name__, place, "the target is the input itself, not shifted by one token", proof=[call, loss]
            )


def _network(project: Project, logits: ast.expr, scope: Scope) -> tuple[Call, Scope] | None:
    """The call of the network that gives the logits, with the class; None where a slice lies on the way."""
    for step in back(project, logits, scope):
        if isinstance(step.node, ast.Subscript) and SHIFTS.search(written(step.node)):
            return None
        if isinstance(step.node, ast.Call) and is_module(project, step.node.func, step.scope):
            owner = project.class_of(step.node.func, step.scope)
            return (Call(step.node, step.scope), owner) if owner is not None else None
    return None


def _autoregressive(project: Project, owner: Scope) -> bool:
    """True for a network over token embeddings that sees only what came before, and that nothing calls otherwise."""
    module = text_of(project, owner)
    everything = "\n".join(text_of(project, c) for c in project.classes if project.is_a(c, "Module"))
    if NOT_NEXT.search(everything) or NOT_NEXT.search(owner.module.text[:300]):
        return False
    return "Embedding(" in everything and bool(CAUSAL.search(everything)) and "Linear(" in module


def _same(
    project: Project, fed: tuple[ast.expr, Scope], target: tuple[ast.expr, Scope]
) -> tuple[ast.AST, Scope] | None:
    """Where the target is made, if that is from the same slice as the input; None where they differ or are unknown."""
    ours, theirs = _slices(project, *fed), _slices(project, *target)
    if ours and theirs:
        one, other = ours[0], theirs[0]
        own = one.node is not other.node and one.scope is other.scope
        if own and written(one.node) == written(other.node):
            return _statement(project, other)
        return None
    if ours or theirs:
        return None
    if (
        written(_bare(fed[0])) == written(_bare(target[0]))
        and fed[1] is target[1]
        and isinstance(_bare(fed[0]), ast.Name)
    ):
        return target
    return None


def _statement(project: Project, step: Step) -> tuple[ast.AST, Scope]:
    return project.statement(step.node, step.scope), step.scope


def _slices(project: Project, node: ast.expr, scope: Scope) -> list[Step]:
    """The nearest slices (or gathers by an index) that the value goes through."""
    found = []
    for step in back(project, node, scope):
        if isinstance(step.node, ast.Subscript) and any(isinstance(n, ast.Slice) for n in ast.walk(step.node.slice)):
            found.append(step)
        if isinstance(step.node, ast.Call) and last(step.node) in ("roll", "narrow", "unfold", "as_strided"):
            found.append(step)
    return found


def last(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _bare(node: ast.expr) -> ast.expr:
    keeps = ("view", "reshape", "flatten", "contiguous", "long", "to", "clone")
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in keeps:
        node = node.func.value
    return node
