"""The reference model is the policy itself.

What: ``ref_model`` is the very object that is given as ``model``; or in a loop of one's own, two names are run as
policy and reference and stand for one network.
Why it matters: both log-probabilities move together and the margin stays zero; TRL raises.
When it is fine: with a copy, a second load, or ``ref_model=None``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.arguments import imported
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import made, option
from trainwreck.code.order import under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.answer_margins import reference_unused
from trainwreck.code.rehearsal.questions.leashes import own_leash
from trainwreck.code.rehearsal.questions.preferences import own_reference
from trainwreck.code.rehearsal.questions.references import added, too_early, unrelated
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix
from trainwreck.core.row import Row

BAD = (
    """
from transformers import AutoModelForCausalLM
from trl import DPOTrainer
model = AutoModelForCausalLM.from_pretrained("m")
DPOTrainer(model=model, ref_model=model, args=args, train_dataset=data).train()  # expect
""",
    """
from transformers import AutoModelForCausalLM
from trl import DPOTrainer
model = AutoModelForCausalLM.from_pretrained("m")
reference = model
DPOTrainer(model, reference, args=args, train_dataset=data).train()  # expect
""",
    """
import torch, torch.nn as nn, torch.nn.functional as F
def logp(net, ids):
    return net(ids).log_softmax(-1).sum(-1)
class Tuner:
    def __init__(self, policy):
        self.policy = policy
        self.anchor = policy  # expect
    def loss(self, good, bad):
        now = logp(self.policy, good) - logp(self.policy, bad)
        with torch.no_grad():
            then = logp(self.anchor, good) - logp(self.anchor, bad)
        return -F.logsigmoid(0.1 * (now - then)).mean()
""",
    """
import copy, torch, torch.nn as nn
from torch.nn import functional as F
class Net(nn.Module):
    def forward(self, ids):
        return ids
    def score(self, ids):
        return self(ids).log_softmax(-1).sum(-1)
def train(model, ref, pairs, opt):
    for good, bad in pairs:
        gain = model.score(good) - ref.score(good).detach()
        loss_ = model.score(bad) - ref.score(bad).detach()
        loss = F.softplus(loss_ - gain).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
def main(pairs):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    frozen = copy.copy(net).eval()  # expect
    train(net, frozen, pairs, opt)
""",
)
GOOD = (
    """
import copy, torch
from torch.nn import functional as F
def margin(model, ref, good, bad):
    with torch.no_grad():
        before = ref(good) - ref(bad)
    return F.logsigmoid(model(good) - model(bad) - before)
def main(net, good, bad):
    frozen = copy.deepcopy(net).eval()
    return margin(net, frozen, good, bad)
class Ratio:
    def __init__(self, policy, other):
        self.policy, self.old = policy, other
    def step(self, x):
        with torch.no_grad():
            old = self.policy(x).log_softmax(-1)
        return (self.policy(x).log_softmax(-1) - old).exp()
""",
    """
import copy
from transformers import AutoModelForCausalLM
from trl import DPOTrainer
model = AutoModelForCausalLM.from_pretrained("m")
reference = copy.deepcopy(model)
DPOTrainer(model=model, ref_model=reference, args=args, train_dataset=data)
DPOTrainer(model=model, ref_model=None, args=args, train_dataset=data)
second = AutoModelForCausalLM.from_pretrained("m")
DPOTrainer(model=model, ref_model=second, args=args, train_dataset=data)
DPOTrainer(model="m", ref_model="m", args=args, train_dataset=data)
""",
)
PREFERENCE = ("sigmoid", "logsigmoid", "softplus", "LogSigmoid", "Softplus", "kl_div", "kl_divergence")
"""What a loss on a margin or a distance to a reference is written with."""
SAME_OBJECT = frozenset(["eval", "train", "to", "cuda", "cpu", "requires_grad_", "copy", "compile", "float", "half"])
"""Calls that leave the weights where they are; ``copy.copy`` shares them too."""
OTHER = pattern(r"teacher|target|ema|momentum|critic", re.IGNORECASE)
MAX_DEPTH = 8


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, _written(project), own_reference, added, unrelated, own_leash, too_early, reference_unused
    )


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("DPOTrainer", "KTOTrainer"):
        model, reference = option(project, call, "model", 0), option(project, call, "ref_model", 1)
        if model is None or reference is None or not imported(project, call, "transformers"):
            continue
        if not isinstance(model[0], ast.Name | ast.Attribute):
            continue
        same = written(model[0]) == written(reference[0]) or _alias(project, reference[0], call, written(model[0]))
        if same and not _text(project, call):
            place = keyword_place(call, "ref_model") if call.node.lineno != call.node.end_lineno else None
            text = "the reference model is the policy itself: the margin between them stays zero"
            fix = Fix("ref_model=None, or a copy")
            yield sighting(__name__, place or call, text, fix=fix)
    yield from _by_hand(project)


class _Run(Row):
    """A network that is run: how it is named, whether without gradient, and in which call."""

    subject: ast.expr
    frozen: bool
    call: Call


def _by_hand(project: Project) -> Iterator[Evidence]:
    """Loops of one's own: one network under two names, one of them run without gradient, in a preference loss."""
    if not any(project.calls_by_name.get(name) for name in PREFERENCE):
        return
    told: set[int] = set()
    for scope in project.functions:
        runs = list(_runs(project, scope))
        if not any(r.frozen for r in runs) or all(r.frozen for r in runs) or not _compares(project, scope):
            continue
        for frozen in (r for r in runs if r.frozen and not OTHER.search(written(r.subject))):
            for live in (r for r in runs if not r.frozen and written(r.subject) != written(frozen.subject)):
                if _what(live.call) != _what(frozen.call):
                    continue
                one, other = (_objects(project, r.subject, scope, 0) for r in (live, frozen))
                if len(one) == 1 and one.keys() == other.keys():
                    place = next(iter(other.values())) or (frozen.call.node, scope)
                    if id(place[0]) not in told:
                        told.add(id(place[0]))
                        text = f"{written(frozen.subject)} is the policy itself: their difference stays zero"
                        yield sighting(__name__, place, text, proof=[frozen.call, live.call])
                    break


def _compares(project: Project, scope: Scope) -> bool:
    """True if this function, or one that calls it or is called by it, computes a loss on a margin or a distance."""
    near = [scope, *(c.scope for c in project.callers(scope))]
    inner = [t for c in project.calls_by_scope.get(scope, ()) if (t := project.resolve(c.node.func, scope)) is not None]
    calls = [c for s in (*near, *inner) for c in project.calls_by_scope.get(s, ())]
    return any(c.name in PREFERENCE for c in calls)


def _what(call: Call) -> str:
    """What is done with the network: the function or method, empty where it is called itself."""
    return call.name if call.node.args and _helper(call) else ""


def _helper(call: Call) -> bool:
    return not written(call.node.func).startswith("self.") or isinstance(call.receiver, ast.Attribute)


def _runs(project: Project, scope: Scope) -> Iterator[_Run]:
    for call in project.calls_by_scope.get(scope, ()):
        frozen = under_no_grad(project, call.node, scope) is not None or _detached(project, call)
        target = project.resolve(call.node.func, scope)
        if target is not None and target.kind == "function" and target.owner is None:
            for name, value in zip(target.params, call.node.args, strict=False):
                if isinstance(value, ast.Name | ast.Attribute) and _runs_parameter(project, target, name):
                    yield _Run(value, frozen, call)
        elif isinstance(call.receiver, ast.Name | ast.Attribute) and written(call.receiver) != "self":
            owner = project.class_of(call.receiver, scope)
            if owner is not None and project.is_a(owner, "Module") and call.name not in SAME_OBJECT:
                yield _Run(call.receiver, frozen, call)
        if isinstance(call.node.func, ast.Name | ast.Attribute) and target is None:
            yield _Run(call.node.func, frozen, call)


def _runs_parameter(project: Project, function: Scope, name: str) -> bool:
    """True if the function calls its parameter, or a method of it."""
    calls = project.calls_by_scope.get(function, ())
    return any(written(c.node.func) == name or written(c.receiver) == name for c in calls)


def _detached(project: Project, call: Call) -> bool:
    at: ast.AST = call.node
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, ast.Attribute) and above.attr == "detach" and above.value is at:
            return True
        if not isinstance(above, ast.Attribute | ast.Call):
            return False
        at = above
    return False


_Objects = dict[int, "tuple[ast.AST, Scope] | None"]


def _objects(project: Project, node: ast.expr, scope: Scope, depth: int) -> _Objects:
    """The networks that ``node`` may stand for, by where each was made or came in; empty where it can't be told.
    With each the last place on the way where one name was set to another."""
    if depth > MAX_DEPTH:
        return {}
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return _objects(project, node.values[-1], scope, depth + 1) if _left_out(project, node, scope) else {}
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in SAME_OBJECT:
            inner = node.args[0] if name in ("copy", "compile") and node.args else getattr(node.func, "value", None)
            found = _objects(project, inner, scope, depth + 1) if inner is not None else {}
            return {key: (project.statement(node, scope), scope) for key in found}
        return {id(node): None}
    if not isinstance(node, ast.Name | ast.Attribute):
        return {}
    found = {}
    for binding in project.bindings(node, scope) or _fields(project, node, scope):
        if binding.kind == "param":
            sources = project.arguments(binding)
            if not sources:
                found[id(binding)] = None
            for value, where in sources:
                found |= {k: p or (value, where) for k, p in _objects(project, value, where, depth + 1).items()}
        elif binding.kind == "assign" and binding.value is not None:
            value_ = binding.value
            for part in binding.path:
                if not isinstance(value_, ast.Tuple) or not isinstance(part, int) or part >= len(value_.elts):
                    return {}
                value_ = value_.elts[part]
            inner_ = _objects(project, value_, binding.scope, depth + 1)
            if not inner_:
                return {}
            plain = isinstance(value_, ast.Name | ast.Attribute)
            found |= {k: (binding.node, binding.scope) if plain else p for k, p in inner_.items()}
        else:
            return {}
    return found


def _left_out(project: Project, node: ast.BoolOp, scope: Scope) -> bool:
    """True for ``given or default`` where nothing but None is ever given."""
    first = node.values[0]
    if len(node.values) != 2 or not isinstance(first, ast.Name):
        return False
    given = [v for b in project.lookup(first.id, scope) if b.kind == "param" for v, _ in project.arguments(b)]
    return bool(given) and all(isinstance(v, ast.Constant) and v.value is None for v in given)


def _fields(project: Project, node: ast.expr, scope: Scope) -> list[Binding]:
    """What the constructor calls of a dataclass give to one of its fields."""
    if not isinstance(node, ast.Attribute):
        return []
    owner = project.class_of(node.value, scope)
    if owner is None or project.find_method(owner, "__init__") is not None:
        return []
    fields = [n.target.id for n in project.within(owner, ast.AnnAssign) if isinstance(n.target, ast.Name)]  # type: ignore[attr-defined]
    if node.attr not in fields:
        return []
    found = []
    for call in project.calls(owner.name):
        value = call.argument(node.attr, fields.index(node.attr))
        if value is not None:
            found.append(Binding(node.attr, "assign", call.node, call.scope, value))
    return found


def _alias(project: Project, node: ast.expr, call: object, name: str) -> bool:
    """True for a name that was set to ``name`` and nothing else."""
    scope = getattr(call, "scope", None)
    bindings = project.lookup(node.id, scope) if isinstance(node, ast.Name) and scope is not None else []
    return len(bindings) == 1 and bindings[0].kind == "assign" and written(bindings[0].value) == name


def _text(project: Project, call: object) -> bool:
    """True where the model is given by its name, so that each is loaded anew."""
    node = getattr(call, "node", None)
    value = node.args[0] if node is not None and node.args else None
    scope = getattr(call, "scope", None)
    if value is None or scope is None:
        return False
    makers = made(project, value, scope)
    bindings = project.bindings(value, scope) if not makers else []
    return any(isinstance(b.value, ast.Constant) for b in bindings)
