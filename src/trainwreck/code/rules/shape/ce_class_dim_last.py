"""Logits per token go into the cross entropy unreshaped.

What: the output (batch, time, classes) of a head over a sequence layer is given to ``cross_entropy`` as it is.
Why it matters: the loss takes axis 1 for the classes: it raises, or silently learns the wrong thing where sizes
agree.
When it is fine: after ``view(-1, C)`` or ``transpose(1, 2)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import (
    made_names,
    text_of,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.misfits import clashes
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.class_axis import classes_last
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 16)
        self.rnn = nn.LSTM(16, 32, batch_first=True)
        self.head = nn.Linear(32, 5)
    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.head(h)
def train(loader):
    model, criterion = Tagger(), nn.CrossEntropyLoss()
    for x, tags in loader:
        loss = criterion(model(x), tags)  # expect
        loss.backward()
""",
    """
import torch.nn.functional as F
from torch import nn
class Lm(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.emb = nn.Embedding(v, 16)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, batch_first=True), 2)
        self.out = nn.Linear(16, v)
    def forward(self, x):
        return self.out(self.enc(self.emb(x)))
def train(loader):
    model = Lm(50)
    for x, y in loader:
        logits = model(x)
        F.cross_entropy(logits, y).backward()  # expect
""",
)
GOOD = """
import torch.nn.functional as F
from torch import nn
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 16)
        self.rnn = nn.LSTM(16, 32, batch_first=True)
        self.head = nn.Linear(32, 5)
    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.head(h)
class Classifier(Tagger):
    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.head(h[:, -1])
class Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 16)
        self.head = nn.Linear(16, 100)
    def forward(self, x):
        return self.head(self.emb(x))
def train(loader):
    model, other, skip = Tagger(), Classifier(), Skip()
    for x, y in loader:
        F.cross_entropy(model(x).transpose(1, 2), y).backward()
        F.cross_entropy(model(x).view(-1, 5), y.view(-1)).backward()
        F.cross_entropy(other(x), y).backward()
        F.cross_entropy(skip(x), y).backward()
"""
SEQUENCE = frozenset(["LSTM", "GRU", "RNN", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer"])


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), classes_last)


def _seen(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        value = loss.argument("input", 0)
        if value is None or "crossentropy" not in loss_kind(project, loss):
            continue
        if any(isinstance(n, ast.Subscript) for n in ast.walk(value)):
            continue  # one row of them, or one position of each
        found = ends(project, value, loss.scope, reshapes=False)
        if (
            len(found) == 1
            and isinstance(found[0][0], ast.Call)
            and _per_token(project, Call(found[0][0], found[0][1]))
        ):
            text = "logits of shape (batch, time, classes) reach the loss with the classes last"
            yield sighting(__name__, loss, text, proof=[Call(found[0][0], found[0][1])])
    for clash in clashes(project, "classes-last"):
        yield sighting(__name__, clash.place, clash.text, proof=clash.by)


def _per_token(project: Project, head: Call) -> bool:
    """True for the call of a Linear layer on the whole output of a sequence layer over an embedding."""
    if (
        head.scope.name != "forward"
        or "Linear" not in made_names(project, head.node.func, head.scope)
        or not head.node.args
    ):
        return False
    text = text_of(project, head.scope)
    if any(w in text for w in ("mean(", "max(", "pool", "squeeze", "flatten", "view(", "reshape(", "[:, ", "pack_")):
        return False
    inner = ends(project, head.node.args[0], head.scope, reshapes=False)
    if len(inner) != 1 or not isinstance(inner[0][0], ast.Call):
        return False
    call = Call(inner[0][0], inner[0][1])
    if not made_names(project, call.node.func, call.scope) & SEQUENCE or isinstance(call.node.func, ast.Call):
        return False
    owner = head.scope.owner
    return owner is not None and "Embedding(" in text_of(project, owner)
