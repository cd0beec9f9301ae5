"""A softmax runs over the wrong axis: the batch, a single element, or the queries.

What: the log-probabilities of a classifier are made by a softmax over axis 0; attention scores of one channel
(``nn.Linear(h, 1)``) are normalised over that channel, so that each weight is 1; scores ``q @ k.T`` are normalised
over the queries instead of the keys; embeddings are scaled to unit length over the samples, and compared over features.
Why it matters: probabilities sum to one over the wrong things: the model learns to compare samples, or attends to all
alike.
When it is fine: for a contrastive loss over the batch, for correlations of features (Barlow Twins), and for slots that
compete (slot attention).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import bound_to, linear, made, only, option, text_of
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.misfits import clashes
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.agreement import softened_along_another
from trainwreck.code.rehearsal.questions.axes import wrong_axis
from trainwreck.code.rehearsal.questions.baselines import over_own_time
from trainwreck.code.rehearsal.questions.corrupted import columns_of_table
from trainwreck.code.rehearsal.questions.corrupted import over_samples as pairs_over_samples
from trainwreck.code.rehearsal.questions.counted_losses import normalised_over_time
from trainwreck.code.rehearsal.questions.gates import across_tokens, shared_across_tokens
from trainwreck.code.rehearsal.questions.grouping import other_groups
from trainwreck.code.rehearsal.questions.layer_order import picked_over_samples
from trainwreck.code.rehearsal.questions.lengths import apart
from trainwreck.code.rehearsal.questions.log_dets import reduced_otherwise
from trainwreck.code.rehearsal.questions.next_values import centred_over_all
from trainwreck.code.rehearsal.questions.normalising import other_axis as features_missed
from trainwreck.code.rehearsal.questions.penalties import over_samples
from trainwreck.code.rehearsal.questions.pixels import other_axis
from trainwreck.code.rehearsal.questions.repeated_axis import takes_no_part
from trainwreck.code.rehearsal.questions.running_sums import from_sample_to_sample
from trainwreck.code.rehearsal.questions.soft_targets import along_another_axis
from trainwreck.code.rehearsal.questions.spread import within_samples
from trainwreck.code.rehearsal.questions.squares_of_all import one_square_for_all
from trainwreck.code.rehearsal.questions.standards import axes_apart
from trainwreck.code.rehearsal.questions.successors import across_states
from trainwreck.code.rehearsal.questions.taught_axes import among_samples
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import call_ends, ends
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
    def forward(self, x):
        return F.log_softmax(self.fc(x), dim=0)  # expect
def train(loader):
    model = Net()
    for x, y in loader:
        F.nll_loss(model(x), y).backward()
""",
    """
from torch import nn
model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0))  # expect
criterion = nn.NLLLoss()
def train(loader):
    for x, y in loader:
        criterion(model(x), y).backward()
""",
    """
import torch
import torch.nn.functional as F
from torch import nn
class GatedPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.v, self.w = nn.Linear(dim, 8), nn.Linear(8, 1)
    def forward(self, h):
        score = self.w(torch.tanh(self.v(h)))
        attention = F.softmax(score, dim=-1)  # expect
        return (attention * h).sum(dim=1)
""",
    """
import torch
class Attention(torch.nn.Module):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-2, -1) / 8
        att = scores.softmax(dim=-2)  # expect
        return att @ v
""",
    """
import torch
import torch.nn.functional as F
from torch import nn
def train(model, loader, opt):
    head = nn.Linear(16, 5)
    for x, y in loader:
        probs = F.softmax(head(model(x)), dim=0)  # expect
        loss = -torch.log(probs[torch.arange(len(y)), y] + 1e-9).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def clip_loss(a, b, model, x, y):
    logits = a @ b.T
    over = F.log_softmax(logits, dim=0)
    return -over.diagonal().mean() + F.nll_loss(F.log_softmax(model(x), dim=1), y)
class Pool(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w = torch.nn.Linear(dim, 1)
    def forward(self, h, q, k, v):
        a = F.softmax(self.w(h), dim=1)
        b = F.softmax(self.w(h).squeeze(-1), dim=-1)
        c = torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v
        d = (k @ q.transpose(-2, -1)).softmax(-2).transpose(-2, -1) @ v
        return a * h, b, c, d
"""


def find(project: Project) -> Iterator[Evidence]:
    asked = (
        wrong_axis,
        features_missed,
        reduced_otherwise,
        over_samples,
        apart,
        other_axis,
        within_samples,
        other_groups,
        picked_over_samples,
        axes_apart,
        across_states,
        along_another_axis,
        across_tokens,
        shared_across_tokens,
        centred_over_all,
        softened_along_another,
        one_square_for_all,
        columns_of_table,
        pairs_over_samples,
        takes_no_part,
        normalised_over_time,
        among_samples,
        over_own_time,
        from_sample_to_sample,
    )
    yield from further(__name__, project, _written(project), *asked)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[tuple[str, int]] = set()
    for item in (*_classifier(project), *_single(project), *_queries(project), *_batch(project), *_unfit(project)):
        key = (item.where.path or "", item.where.line or 0)
        if key not in told:
            told.add(key)
            yield item


def _unfit(project: Project) -> Iterator[Evidence]:
    """What a reduction leaves doesn't fit the other side, and would, had it run along another axis."""
    for clash in clashes(project, "axis"):
        yield sighting(__name__, clash.place, clash.text, proof=clash.by)


def _softmaxes(project: Project) -> Iterator[tuple[Call, ast.expr, object]]:
    """Calls of a softmax with what it is taken of and its axis."""
    for call in project.calls("softmax", "log_softmax", "Softmax"):
        if call.name == "Softmax":
            continue
        functional = call.receiver is None or not project.bindings_of_values(call.receiver, call.scope)
        value = call.argument("input", 0) if functional else call.receiver
        if value is not None:
            yield call, value, only(project, option(project, call, "dim", 1 if functional else 0))


def _single(project: Project) -> Iterator[Evidence]:
    """The last axis has one element."""
    for call, value, axis in _softmaxes(project):
        if axis != -1:
            continue
        found = call_ends(project, value, call.scope)
        exact = [(n, s) for n, s in ends(project, value, call.scope, reshapes=False) if isinstance(n, ast.Call)]
        if len(exact) != 1 or len(found) != 1:
            continue
        maker = _linear(project, Call(exact[0][0], exact[0][1]))
        if maker is not None and number(project, maker.argument("out_features", 1), maker.scope) == 1:
            text = "the last axis has one element: every weight of this softmax is 1"
            yield sighting(__name__, call, text, proof=[maker])


def _linear(project: Project, call: Call) -> Call | None:
    """The linear layer that ``call`` runs, alone or last in a stack."""
    for maker in made(project, call.node.func, call.scope):
        if maker.name == "Linear":
            return maker
        last = maker.node.args[-1] if maker.name == "Sequential" and maker.node.args else None
        if isinstance(last, ast.Call) and last_name(last.func) == "Linear":
            return Call(last, maker.scope)
    return None


def _queries(project: Project) -> Iterator[Evidence]:
    """``(q @ k.T).softmax(-2) @ v``."""
    for call, value, axis in _softmaxes(project):
        if axis != -2 or "slot" in call.scope.module.text.lower():
            continue
        scores = [n for n, _ in ends(project, value, call.scope)]
        products = [n for score in scores for n in ast.walk(score) if _product(n)]
        turned = ".transpose" in written(project.parent(call.node, call.scope))
        if products and not turned and _weights_values(project, call):
            yield sighting(__name__, call, "the scores are normalised over the queries, not over the keys")


def _product(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return isinstance(node, ast.Call) and last_name(node.func) in ("matmul", "bmm")


def _weights_values(project: Project, call: Call) -> bool:
    """True if the softmax is the left factor of a product with values."""
    name = bound_to(project, call)
    for node in project.within(call.scope, ast.BinOp, ast.Call):
        left: ast.AST | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            left = node.left
        elif isinstance(node, ast.Call) and last_name(node.func) in ("matmul", "bmm") and node.args:
            left = node.args[0]
        named = bool(name) and re.match(rf"(self\.\w+\()?{re.escape(name)}\)?$", written(left))
        if left is call.node or named:
            return True
    return False


def _batch(project: Project) -> Iterator[Evidence]:
    """A classifier's output is normalised over axis 0 and indexed by label afterwards."""
    for call, value, axis in _softmaxes(project):
        name = bound_to(project, call)
        if axis != 0 or not name or not any(linear(project, c) for c in call_ends(project, value, call.scope)):
            continue
        text = text_of(project, call.scope)
        own = re.escape(name)
        if re.search(rf"{own}\[torch\.arange|{own}\.gather\(1|{own}\.argmax\((dim=)?1", text):
            yield sighting(__name__, call, "the softmax runs over axis 0, the batch")


def _classifier(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        value = loss.argument("input", 0)
        if value is None or not loss_kind(project, loss) & {"nll"}:
            continue
        for call in call_ends(project, value, loss.scope):
            layer = call.name in ("LogSoftmax", "Softmax")
            makers = [call] if call.name == "log_softmax" or layer else made(project, call.node.func, call.scope)
            for maker in makers:
                if maker.name not in ("log_softmax", "LogSoftmax"):
                    continue
                place = (
                    0
                    if maker.name == "LogSoftmax" or project.dotted(maker.node.func, maker.scope).count(".") == 1
                    else 1
                )
                if only(project, option(project, maker, "dim", place)) == 0 and project.called(maker).startswith(
                    "torch"
                ):
                    yield sighting(__name__, maker, "the softmax runs over axis 0, the batch", proof=[loss])
