"""Class weights that do the opposite of what they are for.

What: the ``weight`` of a classification loss grows with the number of samples of a class; ``pos_weight`` is positives
over negatives; ``WeightedRandomSampler`` gets one weight per class instead of one per sample; or the loss is weighted
and the sampler balances as well.
Why it matters: the common class is favoured even more, or only the first few samples are ever drawn, or the balance
is corrected twice.
When it is fine: with inverse frequencies, negatives over positives, and weights indexed by the labels.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import is_torch
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.weights import grow, looked_up, turned_over, twice
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import numpy as np, torch
def main(labels):
    counts = np.bincount(labels)
    weights = torch.tensor(counts / counts.sum(), dtype=torch.float32)
    criterion = torch.nn.CrossEntropyLoss(weight=weights)  # expect
""",
    """
import torch, torch.nn.functional as F
def loss(logits, y):
    freq = torch.bincount(y).float()
    freq = freq / freq.max()
    return F.cross_entropy(logits, y, weight=freq.to(logits.device))  # expect
""",
    """
import torch
from torch import nn
def main(y):
    pos = (y == 1).sum()
    neg = (y == 0).sum()
    return nn.BCEWithLogitsLoss(pos_weight=pos / neg)  # expect
""",
    """
import torch
def main(y):
    n_pos = y.sum()
    n_neg = len(y) - n_pos
    ratio = torch.tensor([n_pos / n_neg])  # expect
    return torch.nn.BCEWithLogitsLoss(pos_weight=ratio)
""",
    """
import torch
from torch.utils.data import WeightedRandomSampler
def main(labels):
    counts = torch.bincount(labels)
    weights = 1.0 / counts.float()
    return WeightedRandomSampler(weights, num_samples=len(labels))  # expect
""",
    """
import numpy as np, torch
def main(train, y):
    counts = np.bincount(y)
    inverse = len(y) / counts
    sampler = torch.utils.data.WeightedRandomSampler(inverse[y], len(y))
    loss = torch.nn.CrossEntropyLoss(weight=torch.tensor(inverse))  # expect
""",
    """
import torch
from torch import nn
def balance(labels, k):
    n = torch.bincount(labels, minlength=k).float()
    share = n / len(labels)
    return share * k / share.sum()
class Weighted(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight
    def forward(self, logits, y):
        return nn.functional.cross_entropy(logits, y, weight=self.weight)  # expect
loss = Weighted(balance(train_y, 4))
""",
    """
import torch
from collections import Counter
def main(labels, classes):
    seen = Counter(labels)
    weights = [seen[c] / len(labels) for c in range(classes)]
    return torch.nn.CrossEntropyLoss(weight=torch.tensor(weights))  # expect
""",
    """
import numpy as np, torch
def main(labels):
    share = np.bincount(labels) / len(labels)
    return torch.utils.data.WeightedRandomSampler(share[labels], len(labels))  # expect
""",
)
GOOD = (
    """
import numpy as np, torch
from collections import Counter
def balance(y, k):
    n = torch.bincount(y, minlength=k).float()
    w = n.sum() / n
    return w * k / w.sum()
def main(labels, y):
    counts = np.bincount(labels)
    a = torch.nn.CrossEntropyLoss(weight=torch.tensor(1.0 / counts))
    b = torch.nn.CrossEntropyLoss(weight=torch.tensor(counts.sum() / (len(counts) * counts)))
    c = torch.nn.CrossEntropyLoss(weight=torch.tensor(1 - counts / counts.sum()))
    d = torch.nn.CrossEntropyLoss(weight=torch.tensor(counts.max() / counts))
    pos, neg = (y == 1).sum(), (y == 0).sum()
    e = torch.nn.BCEWithLogitsLoss(pos_weight=neg / pos)
    f = torch.nn.BCEWithLogitsLoss(pos_weight=(len(y) - y.sum()) / y.sum())
    g = torch.nn.CrossEntropyLoss(weight=torch.tensor(counts ** -0.5))
    h = torch.nn.CrossEntropyLoss(weight=torch.tensor([0.2, 0.8]))
    seen = Counter(labels)
    i = torch.nn.CrossEntropyLoss(weight=torch.tensor([len(labels) / max(seen[c], 1) for c in range(3)]))
    j = torch.nn.CrossEntropyLoss(weight=balance(labels, 3))
    return a, b, c, d, e, f, g, h
""",
    """
import torch
from torch.utils.data import WeightedRandomSampler
def main(labels):
    weights = 1.0 / torch.bincount(labels).float()
    per_sample = [weights[t] for t in labels]
    one = WeightedRandomSampler(weights[labels], len(labels))
    two = WeightedRandomSampler(per_sample, len(labels))
    return one, two
""",
)
WEIGHTED = ("CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss")
BINARY = ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits")
SAME = frozenset(
    [
        "tensor",
        "as_tensor",
        "FloatTensor",
        "Tensor",
        "from_numpy",
        "float",
        "double",
        "to",
        "cuda",
        "array",
        "asarray",
        "astype",
        "sqrt",
        "clone",
        "view",
        "reshape",
        "unsqueeze",
        "list",
        "numpy",
        "values",
        "tolist",
        "clip",
        "clamp",
        "sort_index",
        "to_numpy",
        "item",
        "int",
    ]
)
COUNTS = frozenset(["bincount", "value_counts", "histc", "Counter"])
SHARES = frozenset(["softmax", "normalize", "log1p"])
"""Calls of torch whose result rises and falls with the first argument."""
TOTALS = frozenset(["sum", "max", "min", "mean", "median", "len"])
MAX_DEPTH = 12


def find(project: Project) -> Iterator[Evidence]:
    found = list(answers(__name__, project, grow))
    yield from found
    if not found:
        yield from further(__name__, project, _written(project), looked_up, turned_over, twice)


def _written(project: Project) -> Iterator[Evidence]:
    weighted: list[Call] = []
    for call in project.calls(*WEIGHTED):
        value = call.argument("weight", 0 if call.name.endswith("Loss") else 2)
        sense = _sense(project, value, call.scope) if value is not None and is_torch(project, call) else 0
        if sense > 0:
            yield sighting(__name__, call, "these weights grow with the number of samples of a class")
        elif sense < 0:
            weighted.append(call)
    for call in project.calls(*BINARY):
        value = call.argument("pos_weight")
        if value is not None and is_torch(project, call) and _kind(project, value, call.scope) == "pos/neg":
            text = "pos_weight is positives over negatives here; it means negatives over positives"
            yield sighting(__name__, _worked_out(project, value, call.scope) or call, text, proof=[call])
    for call in project.calls("WeightedRandomSampler"):
        value = call.argument("weights", 0)
        if value is None or not is_torch(project, call):
            continue
        if _sense(project, value, call.scope):
            text = "this is one weight per class: only the first samples, as many as there are classes, are ever drawn"
            yield sighting(__name__, call, text)
        elif _indexed(project, value, call.scope, wanted=1):
            yield sighting(__name__, call, "samples of common classes get the larger weights: they are drawn even more")
        elif weighted and weighted[0].scope is call.scope and _indexed(project, value, call.scope):
            text = "the loss weighs the classes, and the sampler balances them as well"
            yield sighting(__name__, weighted[0], text, proof=[call])


def _worked_out(project: Project, value: ast.expr, scope: Scope) -> tuple[ast.AST, Scope] | None:
    """Where the weight that a name stands for is worked out."""
    found = [b for b in project.lookup(value.id, scope) if b.kind == "assign"] if isinstance(value, ast.Name) else []
    return (found[0].node, found[0].scope) if len(found) == 1 else None


def _indexed(project: Project, node: ast.expr, scope: Scope, depth: int = 0, wanted: int = -1) -> bool:
    """True for inverse frequencies (``wanted`` 1: frequencies) looked up by the labels."""
    if isinstance(node, ast.Name) and depth < MAX_DEPTH:
        bindings = [b for b in project.lookup(node.id, scope) if b.kind == "assign" and b.value is not None]
        return (
            len(bindings) == 1
            and bindings[0].value is not None
            and not bindings[0].path
            and _indexed(project, bindings[0].value, bindings[0].scope, depth + 1, wanted)
        )
    if isinstance(node, ast.ListComp):
        node = node.elt
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("tolist", "double"):
        return _indexed(project, node.func.value, scope, depth + 1, wanted)
    if isinstance(node, ast.Call) and node.args and last_name(node.func) in SAME:
        return _indexed(project, node.args[0], scope, depth + 1, wanted)
    return isinstance(node, ast.Subscript) and _sense(project, node.value, scope) == wanted


def _sense(project: Project, node: ast.expr | None, scope: Scope, depth: int = 0) -> int:
    """+1 if ``node`` grows with the class counts, -1 if it falls with them, 0 where it is something else."""
    if node is None or depth > MAX_DEPTH:
        return 0
    match node:
        case ast.Name() | ast.Attribute():
            if isinstance(node, ast.Attribute) and node.attr in ("values", "T"):
                return _sense(project, node.value, scope, depth + 1)
            return _of_name(project, node, scope, depth)
        case ast.Call():
            return _of_call(project, node, scope, depth)
        case ast.ListComp() | ast.GeneratorExp() if len(node.generators) == 1:
            return _of_comprehension(project, node, scope, depth)
        case ast.BinOp(op=ast.Div()):
            one, other = (_sense(project, s, scope, depth + 1) for s in (node.left, node.right))
            return 0 if one and other else one or -other
        case ast.BinOp(op=ast.Mult()):
            one, other = (_sense(project, s, scope, depth + 1) for s in (node.left, node.right))
            return 0 if one and other else one or other
        case ast.BinOp(op=ast.Add()):
            return _sense(project, node.left, scope, depth + 1) or _sense(project, node.right, scope, depth + 1)
        case ast.BinOp(op=ast.Sub()) if isinstance(node.left, ast.Constant):
            return -_sense(project, node.right, scope, depth + 1)
        case ast.BinOp(op=ast.Pow()):
            falls = isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
            known = falls or isinstance(node.right, ast.Constant)
            return (-1 if falls else 1) * _sense(project, node.left, scope, depth + 1) if known else 0
    return 0


def _of_name(project: Project, node: ast.Name | ast.Attribute, scope: Scope, depth: int) -> int:
    bindings = [b for b in project.bindings(node, scope) if b.kind in ("assign", "loop", "augment", "append", "param")]
    if isinstance(node, ast.Name):
        before = [b for b in bindings if b.scope is not scope or b.line < node.lineno]
        plain = [b for b in before if b.kind == "assign"]
        bindings = [b for b in before if b.line >= plain[-1].line] if plain else before
    senses = set()
    for binding in bindings:
        if binding.kind == "assign" and binding.value is not None and not binding.path:
            senses.add(_sense(project, binding.value, binding.scope, depth + 1))
        elif binding.kind == "assign" and binding.path == (1,) and "return_counts" in written(binding.value):
            senses.add(1)
        elif binding.kind == "loop" and binding.value is not None and len(binding.path) == 1:
            senses.add(_sense(project, binding.value, binding.scope, depth + 1))
        elif isinstance(binding.node, ast.AugAssign) and isinstance(binding.node.op, ast.Div | ast.Mult):
            if _sense(project, binding.value, binding.scope, depth + 1):
                return 0
        elif binding.kind == "param":
            senses |= {_sense(project, v, s, depth + 1) for v, s in project.arguments(binding)} or {0}
        else:
            return 0
    return senses.pop() if len(senses) == 1 else 0


def _of_comprehension(project: Project, node: ast.ListComp | ast.GeneratorExp, scope: Scope, depth: int) -> int:
    """One weight per class: ``[n / c for c in counts]``, ``[counts[k] / n for k in range(classes)]``."""
    each = node.generators[0]
    if not isinstance(each.target, ast.Name):
        return _sense(project, node.elt, scope, depth + 1)
    classes = isinstance(each.iter, ast.Call) and last_name(each.iter.func) in ("range", "sorted", "unique", "keys")
    table = written(each.iter)
    label = each.target.id

    def sense(at: ast.expr) -> int:
        match at:
            case ast.Subscript(slice=ast.Name(id=index)) if index == label:
                known = classes or written(at.value) == table
                return _sense(project, at.value, scope, depth + 1) if known else 0
            case ast.BinOp(op=ast.Div()):
                one, other = sense(at.left), sense(at.right)
                return 0 if one and other else one or -other
            case ast.BinOp(op=ast.Mult()):
                one, other = sense(at.left), sense(at.right)
                return 0 if one and other else one or other
            case ast.BinOp(op=ast.Sub()) if isinstance(at.left, ast.Constant):
                return -sense(at.right)
            case ast.Call(func=ast.Name(), args=[inner, *_]) if last_name(at.func) in (*SAME, "max"):
                return sense(inner)
            case ast.Call(func=ast.Attribute(value=inner), args=[]) if last_name(at.func) in SAME:
                return sense(inner)
            case ast.Call() if _counts_label(at, label):
                return 1 if classes else 0
        return _sense(project, at, scope, depth + 1)

    return sense(node.elt)


def _counts_label(node: ast.Call, label: str) -> bool:
    """True for ``(y == k).sum()``, ``sum(y == k)`` and ``labels.count(k)``."""
    name = last_name(node.func)
    subject = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name == "count":
        return len(node.args) == 1 and written(node.args[0]) == label
    if name not in ("sum", "count_nonzero", "mean"):
        return False
    for part in (subject, *node.args[:1]):
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq):
            return label in (written(part.left), written(part.comparators[0]))
    return False


def _of_call(project: Project, node: ast.Call, scope: Scope, depth: int) -> int:
    name = last_name(node.func)
    if name in COUNTS:
        return 1
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    own = receiver is not None and project.bindings_of_values(receiver, scope)
    if name in ("reciprocal", "pow") and own and receiver is not None:
        return -_sense(project, receiver, scope, depth + 1) if name == "reciprocal" else 0
    if name in SAME:
        subject = receiver if own else (node.args[0] if node.args else None)
        return _sense(project, subject, scope, depth + 1)
    target = project.resolve(node.func, scope)
    if target is not None and target.kind == "function":
        senses = {_sense(project, value, target, depth + 1) for value in target.returns}
        return senses.pop() if len(senses) == 1 else 0
    if name == "sum" and receiver is not None and "one_hot" in written(receiver):
        return 1 if written(node.args[0] if node.args else None) == "0" else 0
    if name in SHARES and (own or node.args):
        return _sense(project, receiver if own else node.args[0], scope, depth + 1)
    return 0


def _kind(project: Project, node: ast.expr | None, scope: Scope, depth: int = 0) -> str:
    """``pos``, ``neg``, ``pos/neg``, ``neg/pos`` for counts of the two classes, empty where it is something else."""
    if node is None or depth > MAX_DEPTH:
        return ""
    match node:
        case ast.Name() | ast.Attribute():
            bindings = project.bindings(node, scope)
            if len(bindings) != 1 or bindings[0].kind != "assign":
                return ""
            value = bindings[0].value
            for part in bindings[0].path:
                if not isinstance(value, ast.Tuple) or not isinstance(part, int) or part >= len(value.elts):
                    return ""
                value = value.elts[part]
            return _kind(project, value, bindings[0].scope, depth + 1)
        case ast.List() if len(node.elts) == 1:
            return _kind(project, node.elts[0], scope, depth + 1)
        case ast.BinOp(op=ast.Div()):
            sides = [_kind(project, s, scope, depth + 1) for s in (node.left, node.right)]
            return "/".join(sides) if sorted(sides) == ["neg", "pos"] else ""
        case ast.BinOp(op=ast.Sub()):
            total = isinstance(node.left, ast.Constant | ast.Call) and _kind(project, node.left, scope, depth + 1) == ""
            inner = _kind(project, node.right, scope, depth + 1) if total else ""
            return {"pos": "neg", "neg": "pos"}.get(inner, "")
        case ast.Call():
            return _count(project, node, scope, depth)
    return ""


def _count(project: Project, node: ast.Call, scope: Scope, depth: int) -> str:
    name = last_name(node.func)
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    own = receiver is not None and project.bindings_of_values(receiver, scope)
    subject = receiver if own else (node.args[0] if node.args else None)
    if name in ("sum", "mean", "count_nonzero"):
        if isinstance(subject, ast.Compare) and len(subject.ops) == 1 and isinstance(subject.ops[0], ast.Eq):
            return {"1": "pos", "0": "neg", "1.0": "pos", "0.0": "neg"}.get(written(subject.comparators[0]), "")
        if isinstance(subject, ast.BinOp) and isinstance(subject.op, ast.Sub) and written(subject.left) == "1":
            return "neg"
        return "pos" if isinstance(subject, ast.Name | ast.Attribute) else ""
    return _kind(project, subject, scope, depth + 1) if name in SAME else ""
