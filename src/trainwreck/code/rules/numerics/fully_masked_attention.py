"""A softmax over a row in which everything is masked.

What: scores are filled with -inf and a row can be masked as a whole: a causal mask that masks the diagonal too, an
adjacency drawn at random without self-loops, padding of sequences that may be empty.
Why it matters: softmax over nothing but -inf is NaN, in the forward and for all weights below.
When it is fine: with a finite fill (-1e4, ``finfo.min``), where rows are repaired afterwards, or where each row keeps
a place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import source, text_of, trains
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.masks import empty_rows
from trainwreck.code.rehearsal.questions.nothing_left import empty_sequences
from trainwreck.code.rehearsal.questions.visibility import rows_without_keys
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def pool(h, ids, score):
    s = score(h).masked_fill(ids == 0, float("-inf"))  # expect # place
    return (s.softmax(1) * h).sum(1)
""",
    """
import torch
def attend(q, k, v):
    n = q.size(-2)
    future = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=0)
    score = (q @ k.transpose(-2, -1)).masked_fill(future, float("-inf"))  # expect
    return score.softmax(-1) @ v
def train(q, k, v):
    attend(q, k, v).sum().backward()
""",
    """
import torch
from torch import nn
def graph(n, p):
    edges = torch.triu(torch.rand(n, n) < p, diagonal=1)
    return edges | edges.t()
class GAT(nn.Module):
    def forward(self, x, adj):
        e = self.score(x).masked_fill(~adj, -torch.inf)
        return e.softmax(1) @ x
def main(x):
    net = GAT()
    adj = graph(100, 0.02)  # expect
    net(x, adj).sum().backward()
""",
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Texts(Dataset):
    def __init__(self, n):
        self.items = []
        for _ in range(n):
            length = int(torch.randint(0, 20, (1,)))
            self.items.append(torch.randint(1, 50, (length,)))
    def __getitem__(self, i):
        return self.items[i]
def collate(batch):
    ids = torch.zeros(len(batch), 20, dtype=torch.long)
    for i, t in enumerate(batch):
        ids[i, : len(t)] = t
    return ids, ids.eq(0)
class Net(nn.Module):
    def forward(self, ids, padding):
        s = self.score(self.emb(ids)).masked_fill(padding[:, None], float("-inf"))  # expect
        return s.softmax(-1) @ self.emb(ids)
def main():
    net = Net()
    for ids, padding in DataLoader(Texts(100), 8, collate_fn=collate):
        net(ids, padding).sum().backward()
""",
)
GOOD = (
    """
def pool(h):
    return h.mean(1)
""",
    """
import torch
from torch import nn
def graph(n, p):
    edges = torch.rand(n, n) < p
    edges.fill_diagonal_(True)
    return edges
class Net(nn.Module):
    def forward(self, x, adj, ids):
        n = x.size(-2)
        future = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        e = self.score(x).masked_fill(~adj, float("-inf")).softmax(1)
        c = (x @ x.T).masked_fill(future, float("-inf")).softmax(-1)
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        c = c + (x @ x.T).masked_fill(later, float("-inf")).softmax(-1)
        d = (x @ x.T).masked_fill(torch.tril(torch.ones(n, n)) == 0, float("-inf")).softmax(-1)
        p = self.pool(x).masked_fill(ids == 0, float("-inf")).softmax(-1)
        f = (x @ x.T).masked_fill(torch.triu(torch.ones(n, n)).bool(), -1e4).softmax(-1)
        return e + c + d + p + f
def main(x, ids):
    Net()(x, graph(10, 0.1), ids).sum().backward()
""",
)
EMPTY = pattern(r"\[:0\]|empty", re.IGNORECASE)
LENGTH = pattern(r"(^|_)(len|length|lengths|l|n_tok\w*|num_tokens|size|seq_?len)$", re.IGNORECASE)
SELF_LOOPS = pattern(r"eye\(|fill_diagonal|self_?loop|diag\(|nan_to_num|isnan")
REPAIRED = pattern(r"nan_to_num|isnan|isfinite|any\(-1|\.all\(-1|all\(dim")


def find(project: Project) -> Iterator[Evidence]:
    found = list(further(__name__, project, answers(__name__, project, empty_rows), rows_without_keys, empty_sequences))
    yield from found
    if not found:
        yield from _written(project)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project) or REPAIRED.search(source(project)):
        return
    for call in project.calls("masked_fill", "masked_fill_", "where"):
        fill = call.node.args[-1] if call.node.args else None
        if fill is None or "inf" not in written(fill).replace("finfo", "") or not _softmaxed(project, call):
            continue
        mask = call.node.args[0]
        strict = _masks_diagonal(project, mask, call.scope)
        if strict:
            yield sighting(__name__, call, f"{strict}: the first (or last) row has nothing left for the softmax")
            continue
        place = _random_graph(project, mask, call)
        if place is not None:
            text = "a node without a neighbour has nothing to attend to: there are no self-loops"
            yield sighting(__name__, place, text, proof=[call])
        elif _padding_of_empty(project, mask, call):
            yield sighting(__name__, call, "a sequence may be empty: then the softmax has nothing left")


def _softmaxed(project: Project, call: Call) -> bool:
    text = text_of(project, call.scope)
    return "softmax" in text


def _masks_diagonal(project: Project, mask: ast.expr, scope: Scope) -> str:
    """``triu`` (or a negated ``tril``) that takes the diagonal with it, empty where it does not or is unknown."""
    negated = False
    for node, where in [(mask, scope), *[(s.node, s.scope) for s in back(project, mask, scope) if s.depth < 5]]:
        text = written(node)
        if isinstance(node, ast.UnaryOp) or "== 0" in text or "logical_not" in text or "1 -" in text:
            negated = True
        for inner in [node] if isinstance(node, ast.Call) else []:
            name = last_name(inner.func)
            if name not in ("triu", "tril") or not re.search(r"ones", text):
                continue
            at = Call(inner, where).argument("diagonal", _place(inner))
            diagonal = 0.0 if at is None else number(project, at, where)
            if diagonal is None:
                return ""
            if name == "triu" and not negated and diagonal <= 0:
                return f"triu with diagonal={diagonal:g} masks the diagonal too"
            if name == "tril" and negated and diagonal < 0:
                return f"tril with diagonal={diagonal:g} leaves the diagonal out"
            return ""
    return ""


def _place(call: ast.Call) -> int:
    """Where the diagonal stands: ``torch.triu(x, 1)`` or ``x.triu(1)``."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return 0 if owner is not None and written(owner) != "torch" else 1


def _random_graph(project: Project, mask: ast.expr, call: Call) -> tuple[ast.AST, Scope] | None:
    """Where the network is handed an adjacency that was drawn at random and has no self-loops."""
    if not isinstance(mask, ast.UnaryOp) and "== 0" not in written(mask):
        return None
    steps = list(back(project, mask, call.scope))
    drawn = any(
        isinstance(s.node, ast.Compare) and re.search(r"rand\(|bernoulli|random", written(s.node)) for s in steps
    )
    square = any(
        isinstance(s.node, ast.Call) and last_name(s.node.func) in ("triu", "tril", "t", "rand") for s in steps
    )
    if not drawn or not square or SELF_LOOPS.search(source(project)):
        return None
    outer = [s for s in steps if s.scope is not call.scope and isinstance(s.node, ast.Call)]
    for step in outer:
        if project.resolve(step.node.func, step.scope) is not None:  # type: ignore[attr-defined]
            return project.statement(step.node, step.scope), step.scope
    return (outer[0].node, outer[0].scope) if outer else (call.node, call.scope)


def _padding_of_empty(project: Project, mask: ast.expr, call: Call) -> bool:
    """True if the mask is of padding (an id compared with a constant) and the data holds sequences of length 0."""
    padded = any(
        (isinstance(s.node, ast.Compare) and isinstance(s.node.ops[0], ast.Eq | ast.NotEq | ast.GtE | ast.Lt))
        or (isinstance(s.node, ast.Call) and last_name(s.node.func) in ("eq", "ne", "ge", "lt"))
        for s in back(project, mask, call.scope)
    )
    return padded and any(_may_be_empty(project, scope) for scope in project.scopes if scope.kind != "class")


def _may_be_empty(project: Project, scope: Scope) -> bool:
    for node in project.within(scope, ast.Assign):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        value = node.value
        if isinstance(value, ast.Subscript) and EMPTY.search(written(value)):
            return True
        draw = next(
            (n for n in ast.walk(value) if isinstance(n, ast.Call) and last_name(n.func) in ("randint", "integers")),
            None,
        )
        if draw is None or len(draw.args) < 2 or not LENGTH.search(node.targets[0].id):
            continue
        raised = re.search(r"\+ 1|max\(|clamp", written(value))
        if number(project, draw.args[0], scope) == 0 and not raised:
            return True
    return False


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("masked_fill", "masked_fill_", "where"):
        if "inf" in written(call.node):
            yield guess(__name__, call, "a row in which everything is masked has nothing left here")
            return
    for call in project.calls("MultiheadAttention", "scaled_dot_product_attention", "TransformerEncoder"):
        yield guess(__name__, call, "attention with a mask that can cover a whole row")
        return
