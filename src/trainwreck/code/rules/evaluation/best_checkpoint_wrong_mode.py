"""The best model is chosen in the wrong direction.

What: the best value is replaced when a loss is larger, or when an accuracy is smaller; or a callback has the wrong
mode.
Why it matters: the worst model is kept.
When it is fine: where the value is negated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import (
    only,
    option,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.choosing import worst_chosen
from trainwreck.code.rehearsal.questions.selection import extreme_kept, worst_kept
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def fit(model, evaluate, epochs):
    best_loss = 0.0
    for epoch in range(epochs):
        val_loss = evaluate(model)
        if val_loss > best_loss:  # expect
            best_loss = val_loss
            torch.save(model.state_dict(), "best.pt")
""",
    """
class Runner:
    def check(self, acc):
        if acc < self.best_acc:  # expect
            self.best_acc = acc
            self.save("best.pt")
""",
    """
def fit(model, accuracy, epochs):
    best, keep = 1.0, None
    for epoch in range(epochs):
        acc = accuracy(model)
        if acc < best:  # expect
            best, keep = acc, dict(model.state_dict())
""",
    """
import copy
class Learner:
    def fit(self, n):
        self.top, self.kept = float("inf"), None
        for _ in range(n):
            rmse = self.rmse()
            if rmse > self.top:  # expect
                self.top, self.kept = rmse, copy.deepcopy(self.net.state_dict())
""",
    """
from lightning.pytorch.callbacks import ModelCheckpoint
keep = ModelCheckpoint(monitor="val_acc", mode="min")  # expect
""",
    """
from transformers import TrainingArguments
args = TrainingArguments("out", metric_for_best_model="eval_loss", greater_is_better=True)  # expect
""",
    """
import copy, operator
import torch
from torch import nn
class Keeper:
    def __init__(self, mode="max"):
        self.mode, self.top, self.weights = mode, None, None
    def is_better(self, value):
        if self.mode == "max":
            return value > self.top
        return value < self.top
    def see(self, value, net):
        if self.top is None or self.is_better(value):  # expect
            self.top = value
            self.weights = copy.deepcopy(net.state_dict())
def held_out(net, x, y):
    with torch.no_grad():
        return nn.functional.cross_entropy(net(x), y).item()
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(100, 8), torch.randint(3, (100,))
keeper = Keeper()
for epoch in range(20):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    keeper.see(held_out(net, x, y), net)
net.load_state_dict(keeper.weights)
""",
    """
import math
import torch
from torch import nn
from sklearn.metrics import roc_auc_score
def smaller(new, old):
    return new < old
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(100, 8), torch.rand(100, 1).round()
top, epoch_of = math.inf, -1
for epoch in range(20):
    opt.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(net(x), y).backward()
    opt.step()
    with torch.no_grad():
        value = roc_auc_score(y.numpy(), net(x).numpy())
    if smaller(value, top):  # expect
        top, epoch_of = value, epoch
        torch.save(net.state_dict(), "best.pt")
""",
    """
import copy, math
import torch
from torch import nn
class Stopper:
    def __init__(self, patience, larger_is_better=True):
        self.patience, self.left, self.sign = patience, patience, 1 if larger_is_better else -1
        self.best, self.state = -math.inf, None
    def __call__(self, value, model):
        if self.sign * value > self.best:  # expect
            self.best, self.left = self.sign * value, self.patience
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.left -= 1
        return self.left <= 0
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(100, 8), torch.randn(100, 1)
stop = Stopper(5)
for epoch in range(20):
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
    with torch.no_grad():
        done = stop((net(x) - y).abs().mean().item(), net)
    if done:
        break
net.load_state_dict(stop.state)
""",
    """
import torch
from torch import nn
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(640, 8), torch.randint(3, (640,))
past = []
for e in range(9):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    with torch.no_grad():
        value = (net(x).argmax(1) == y).float().mean().item()
    past.append(value)
    if value == min(past):  # expect
        torch.save(net.state_dict(), "best.pt")
""",
    """
import torch
from torch import nn
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(640, 8), torch.randint(3, (640,))
top, left = 9.0, 5
for e in range(9):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    with torch.no_grad():
        value = (net(x).argmax(1) == y).float().mean().item()
    if value >= top:  # expect
        left -= 1
    else:
        top, left = value, 5
        torch.save(net.state_dict(), "best.pt")
""",
)
GOOD = (
    """
import torch
from torch import nn
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(640, 8), torch.randint(3, (640,))
past = []
for e in range(9):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    with torch.no_grad():
        value = (net(x).argmax(1) == y).float().mean().item()
    past.append(value)
    if value == max(past):
        torch.save(net.state_dict(), "best.pt")
""",
    """
import torch
from torch import nn
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(640, 8), torch.randint(3, (640,))
top, left = 0.0, 5
for e in range(9):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    with torch.no_grad():
        value = (net(x).argmax(1) == y).float().mean().item()
    if value <= top:
        left -= 1
    else:
        top, left = value, 5
        torch.save(net.state_dict(), "best.pt")
""",
    """
import copy, math
import torch
from torch import nn
class Stopper:
    def __init__(self, patience, larger_is_better=True):
        self.patience, self.left, self.sign = patience, patience, 1 if larger_is_better else -1
        self.best, self.state = -math.inf, None
    def __call__(self, value, model):
        if self.sign * value > self.best:
            self.best, self.left = self.sign * value, self.patience
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.left -= 1
        return self.left <= 0
class Best:
    def __init__(self, mode):
        self.better = {"min": lambda a, b: a < b, "max": lambda a, b: a > b}[mode]
        self.value, self.state = None, None
    def offer(self, value, model):
        if self.value is None or self.better(value, self.value):
            self.value, self.state = value, copy.deepcopy(model.state_dict())
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(100, 8), torch.randint(3, (100,))
stop, negated, low, high = Stopper(5, larger_is_better=False), Stopper(5), Best("min"), Best("max")
for epoch in range(20):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    with torch.no_grad():
        value = nn.functional.cross_entropy(net(x), y).item()
        hits = (net(x).argmax(1) == y).float().mean().item()
    low.offer(value, net)
    low.offer(1 - hits, net)
    high.offer(hits, net)
    high.offer(-value, net)
    if stop(value, net) or negated(-value, net):
        break
""",
    """
import torch
from torch import nn
def average_precision(score, y):
    y = y[score.argsort(descending=True)]
    return ((y.cumsum(0) / torch.arange(1, len(y) + 1)) * y).sum() / y.sum()
def worse(new, old):
    return new < old
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(100, 8), torch.rand(100, 1).round()
best, left, worst = 0.0, 5, 1.0
for epoch in range(20):
    opt.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(net(x), y).backward()
    opt.step()
    with torch.no_grad():
        ap = average_precision(net(x)[:, 0], y[:, 0]).item()
    if worse(ap, best):
        left -= 1
        continue
    best, left = ap, 5
    torch.save(net.state_dict(), "best.pt")
""",
    """
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
def fit(model, evaluate, epochs):
    best_loss, best_acc, worst_loss = 1e9, 0.0, 0.0
    for epoch in range(epochs):
        val_loss, acc = evaluate(model)
        if val_loss < best_loss:
            best_loss = val_loss
        if best_acc < acc:
            best_acc = acc
        if val_loss > worst_loss:
            worst_loss = val_loss
        if val_loss > best_loss:
            patience = 1
keep = ModelCheckpoint(monitor="val_acc", mode="max"), EarlyStopping("val_loss", mode="min")
plain = ModelCheckpoint(monitor="val_loss")
""",
)
HIGH = pattern(r"(^|_)(acc|accuracy|f1|auc|auroc|iou|miou|dice|bleu|recall|precision|r2|psnr)(_|\d|$)", re.IGNORECASE)
LOW = pattern(r"(^|_)(loss|mse|rmse|mae|nll|ppl|perplexity|wer|cer|fid)(_|\d|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), worst_kept, extreme_kept, worst_chosen)


def _seen(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in project.within(scope, ast.If):
                assert isinstance(node, ast.If)
                if _wrong(node) and not _seeks_the_worst(node, scope):
                    yield sighting(__name__, (node, scope), f"{written(node.test)} keeps the worst value as the best")
    for call in project.calls("ModelCheckpoint", "EarlyStopping"):
        if project.called(call).split(".")[0] not in ("lightning", "pytorch_lightning", "tensorflow", "keras"):
            continue
        monitor = only(project, option(project, call, "monitor", 2 if call.name == "ModelCheckpoint" else 0))
        mode = only(project, option(project, call, "mode"))
        if isinstance(monitor, str) and ((mode == "min" and _high(monitor)) or (mode == "max" and _low(monitor))):
            yield sighting(__name__, call, f"mode={mode!r} keeps the worst {monitor}")
    for call in project.calls("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig"):
        monitor = only(project, option(project, call, "metric_for_best_model"))
        greater = only(project, option(project, call, "greater_is_better"))
        if isinstance(monitor, str) and ((greater is True and _low(monitor)) or (greater is False and _high(monitor))):
            yield sighting(__name__, call, f"greater_is_better={greater} keeps the worst {monitor}")


def _high(name: str) -> bool:
    return bool(HIGH.search(name)) and not LOW.search(name)


def _low(name: str) -> bool:
    return bool(LOW.search(name)) and not HIGH.search(name)


def _keeps_a_model(node: ast.If) -> bool:
    return any(word in written(s) for s in node.body for word in ("state_dict", "deepcopy", "torch.save"))


def _seeks_the_worst(node: ast.If, scope: Scope) -> bool:
    """True in an attack on a model: the inputs climb the loss, and the highest one is kept on purpose."""
    calls = {last_name(n.func) for n in ast.walk(scope.node) if isinstance(n, ast.Call)}
    return not _keeps_a_model(node) and not calls & {"step", "state_dict"} and bool(calls & {"grad", "sign"})


def _pairs(node: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """(target, value) of an assignment, also of ``a, b = x, y``."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            return list(zip(names, values, strict=False))
        case ast.Assign(targets=[target, *_], value=value):
            return [(target, value)]
    return []


def _wrong(node: ast.If) -> bool:
    """``if value > best: best = value`` for a value that should be small, and the reverse."""
    test = node.test
    if (
        not isinstance(test, ast.Compare)
        or len(test.ops) != 1
        or not isinstance(test.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE)
    ):
        return False
    left, right = written(test.left), written(test.comparators[0])
    greater = isinstance(test.ops[0], ast.Gt | ast.GtE)
    if "best" in left and "best" not in right:
        left, right, greater = right, left, not greater
    if "best" in left or not ("best" in right or _keeps_a_model(node)):
        return False
    replaced = any(
        written(target) == right and written(value) in (left, f"{left}.item()")
        for s in node.body
        for target, value in _pairs(s)
    )
    value, best = re.split(r"[.\[\]'\"]+", left.removesuffix(".item()").rstrip("'\"]"))[-1], right.rsplit(".", 1)[-1]
    if not replaced:
        return False
    return (greater and _low(value) and not _high(best)) or (not greater and _high(value) and not _low(best))
