"""A sequence is longer than the table of positions.

What: token sequences are not cut to the length that the position embedding (``max_position_embeddings``,
``block_size``) was made for.
Why it matters: the position index runs out of the table: an IndexError on the CPU, an assert on a GPU.
When it is fine: with ``truncation=True`` and a ``max_length`` no longer than the table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import back
from trainwreck.code.order import constructors
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.rules.support import at_line
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_true, values
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"index out of range in self",
    r"srcIndex < srcSelectDimSize|indexSelect",
    r"The size of tensor a \(\d+\) must match",
    r"The expanded size of the tensor \(\d+\) must match the existing size",
    r"device-side assert",
    r"forward sequence of length \d+, block size|sequence length .* (longer|exceeds|greater) than",
)
ERROR = "IndexError: index out of range in self"
BAD = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, vocab, dim=32, max_len=16):  # expect
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
    def forward(self, ids):
        where = torch.arange(ids.shape[1])
        h = self.tok(ids)
        return h + self.pos(where)  # fails
def main(batches):
    net = Net(100)
    for ids in batches:
        net(ids)
"""
GOOD = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
    def forward(self, ids):
        return self.tok(ids)  # fails
"""
TABLE = pattern(r"pos|wpe", re.IGNORECASE)
LIMITS = (
    "max_position_embeddings",
    "n_positions",
    "block_size",
    "max_len",
    "max_length",
    "max_seq_len",
    "context_length",
    "seq_len",
)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in surface.calls(project):
        marked = _marked(surface)
        if marked and written(call.node.func) not in marked:
            continue
        if not _is_position_table(project, call):
            continue
        for made in constructors(project, call.node.func, call.scope):
            yield from _table(project, made)
        yield guess(__name__, call, "positions are looked up here")
        return
    yield from locate(project, surface)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    spotted = surface is not None and any(_is_position_table(project, c) for c in surface.calls(project))
    if surface is None or spotted or not surface.spots or "train" in written(surface.spots[0].statement):
        for call in _tokenizations(project):
            yield guess(__name__, call, "the text is tokenized without truncation here")
            return
        for calls in project.calls_by_name.values():
            for call in calls:
                for item in call.node.keywords:
                    if item.arg in LIMITS[:4]:
                        yield guess(__name__, (item, call.scope), "the number of positions is set here")
                        return


def _marked(surface: Surface) -> str:
    return surface.spots[0].frame.marked if surface.spots else ""


def _is_position_table(project: Project, call: Call) -> bool:
    if not TABLE.search(written(call.node.func)) and not _counts(project, call):
        return False
    return any(made.name == "Embedding" for made in constructors(project, call.node.func, call.scope))


def _counts(project: Project, call: Call) -> bool:
    """True if the index comes from ``arange``."""
    for argument in call.node.args[:1]:
        for step in back(project, argument, call.scope):
            if isinstance(step.node, ast.Call) and last_name(step.node.func) in ("arange", "range", "cumsum"):
                return step.scope is call.scope
    return False


def _table(project: Project, made: Call) -> Iterator[Evidence]:
    """The place where the size of the table is decided."""
    size = made.argument("num_embeddings", 0)
    known = values(project, size, made.scope)
    for item in known:
        place = at_line(project, item.proof) if isinstance(item.value, int) else None
        if place is not None:
            yield guess(__name__, place, f"the table of positions has {item.value} rows, decided here", proof=[made])
            return
    yield guess(__name__, made, "the table of positions is made here")


def _tokenizations(project: Project) -> Iterator[Call]:
    """Calls of a tokenizer that neither truncate nor name a length."""
    for name in ("tokenizer", "encode", "batch_encode_plus", "encode_plus", "tok", "tokenize"):
        for call in project.calls(name):
            whole = "tokenizer" in written(call.node.func).lower() or (
                name in ("tok", "tokenize") and call.node.keywords
            )
            if whole and not is_true(call.argument("truncation")) and call.argument("max_length") is None:
                yield call
