"""Adafactor works out its own step size, and is given a rate beside it.

What: with ``relative_step=True`` (the default of transformers) a ``lr`` is passed, a scheduler is built on it or the
loop writes a rate into its groups; or ``relative_step=False`` stands without any rate.
Why it matters: the library refuses a rate; one that is set later is never read, and the run keeps the rate of its own.
When it is fine: with ``relative_step=False`` and a rate, and for torch's Adafactor, which takes ``lr`` as the most.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import bound_to, option, source
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import Adafactor
def build(model):
    return Adafactor(model.parameters(), lr=1e-3, relative_step=True)  # expect
""",
    """
from transformers.optimization import Adafactor
def train(model, loader, rate_at):
    opt = Adafactor(model.parameters(), scale_parameter=True)
    for step, batch in enumerate(loader):
        for group in opt.param_groups:
            group["lr"] = rate_at(step)  # expect
        model(batch).loss.backward()
        opt.step()
        opt.zero_grad()
""",
    """
from transformers import Adafactor, get_linear_schedule_with_warmup
def build(model, steps):
    opt = Adafactor(model.parameters(), lr=None, warmup_init=True)
    return opt, get_linear_schedule_with_warmup(opt, 100, steps)  # expect
""",
    """
from transformers import Adafactor
def build(model):
    return Adafactor(model.parameters(), relative_step=False, scale_parameter=False)  # expect
""",
    """
import torch
class Factored(torch.optim.Optimizer):
    def __init__(self, params, lr=None, relative_step=True):
        super().__init__(params, dict(lr=lr, relative_step=relative_step))
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                t = self.state[p].setdefault("t", 0) + 1
                rate = t ** -0.5 if group["relative_step"] else group["lr"]
                p.data.add_(p.grad, alpha=-rate)
def train(model, batches):
    opt = Factored(model.parameters())
    for k, (x, y) in enumerate(batches):
        opt.param_groups[0]["lr"] = 1e-3 * min(1.0, k / 100)  # expect
        (model(x) - y).square().mean().backward()
        opt.step()
        opt.zero_grad()
""",
)
GOOD = (
    """
from transformers import Adafactor
from transformers.optimization import AdafactorSchedule
def build(model):
    opt = Adafactor(model.parameters(), warmup_init=True, relative_step=True)
    return opt, AdafactorSchedule(opt)
def other(model, steps):
    opt = Adafactor(model.parameters(), lr=1e-3, relative_step=False, scale_parameter=False)
    for group in opt.param_groups:
        group["lr"] = 1e-4
    return opt
""",
    """
import torch
def build(model, steps):
    opt = torch.optim.Adafactor(model.parameters(), lr=1e-2)
    return opt, torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
""",
)
FLAG = "relative_step"


def find(project: Project) -> Iterator[Evidence]:
    if not re.search("Adafactor|relative_step", source(project)):
        return
    for call in (Call(node, scope) for walked in project.walked.values() for node, scope in walked.calls):
        told = _told(project, call)
        if told is None:
            continue
        relative, rate = told
        if not relative:
            if rate is None:
                yield sighting(__name__, call, "neither relative steps nor a rate: it has no step size at all")
        elif rate is not None:
            yield sighting(__name__, call, "relative steps work out the rate, and a rate is given beside them")
        else:
            outer = _set_outside(project, call)
            if outer is not None:
                text = "the optimizer works out its own step size: the rate that is set here is never read"
                yield sighting(__name__, outer, text, proof=[call])


def _told(project: Project, call: Call) -> tuple[bool, ast.expr | None] | None:
    """Whether it takes relative steps, and the rate that it is given; None for other calls and for what isn't known."""
    known = _defaults(project, call)
    if known is None:
        return None
    flag, rate = option(project, call, FLAG), option(project, call, "lr", 1)
    value = flag[0] if flag is not None else known.get(FLAG)
    if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
        return None
    given = rate[0] if rate is not None else known.get("lr")
    if isinstance(given, ast.Constant) and given.value is None:
        given = None
    if given is not None and not isinstance(given, ast.Constant):
        return None  # it may be None
    return value.value, given


def _defaults(project: Project, call: Call) -> dict[str, ast.expr] | None:
    """The defaults of ``lr`` and ``relative_step``, of the library's class or of one of the program that has both."""
    own = project.resolve(call.node.func, call.scope)
    if own is None:
        if last_name(call.node.func) == "Adafactor" and project.called(call).startswith("transformers"):
            return {FLAG: ast.Constant(True), "lr": ast.Constant(None)}
        return None
    made = project.find_method(own, "__init__") if own.kind == "class" and project.is_a(own, "Optimizer") else None
    if made is None or not isinstance(made.node, ast.FunctionDef) or not {FLAG, "lr"} <= set(made.params):
        return None
    args = made.node.args
    positional = dict(zip([a.arg for a in args.args][::-1], args.defaults[::-1], strict=False))
    named = {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}
    return {**positional, **named}


def _set_outside(project: Project, call: Call) -> tuple[ast.AST, Scope] | None:
    """A scheduler that is built on this optimizer, or a rate that is written into its groups."""
    name = bound_to(project, call)
    if not name:
        return None
    everywhere = "." in name or call.scope.kind == "module"
    scopes = [s for w in project.walked.values() for s in w.scopes if everywhere or s is call.scope]
    for node, scope in ((n, s) for s in scopes for n in s.nodes):
        if scope is call.scope and not everywhere and not _still(project, call, name, node):
            continue
        if isinstance(node, ast.Call) and node.args and written(node.args[0]) == name:
            called = last_name(node.func)
            if called.endswith("LR") or (called.startswith("get_") and "schedule" in called):
                return node, scope
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
            continue
        if isinstance(node.slice, ast.Constant) and node.slice.value == "lr" and _group_of(project, node, scope, name):
            return node, scope
    return None


def _still(project: Project, call: Call, name: str, node: ast.AST) -> bool:
    """True where ``node`` follows ``call``, and ``name`` was bound to nothing else on the way to it."""
    line = getattr(node, "lineno", 0)
    if line < call.line:
        return False
    around = list(project.ancestors(node, call.scope))
    others = (b for b in call.scope.bindings.get(name, ()) if call.line < b.line < line)
    return not any(project.parent(project.statement(b.node, call.scope), call.scope) in around for b in others)


def _group_of(project: Project, node: ast.Subscript, scope: Scope, name: str) -> bool:
    """True for ``opt.param_groups[0]["lr"]`` and for the variable of a loop over ``opt.param_groups``."""
    groups = f"{name}.param_groups"
    if written(node.value).startswith(groups):
        return True
    loops = (a for a in project.ancestors(node, scope) if isinstance(a, ast.For))
    return any(written(a.iter) == groups and written(a.target) == written(node.value) for a in loops)
