"""The optimizer never steps.

What: an optimizer is built and a loop runs ``backward()``, but nothing in the program ever calls ``step()``; or it is
zeroed and stepped, and nothing in the program ever computes a gradient.
Why it matters: no gradient, or one that is thrown away; the weights keep their initial values.
When it is fine: where gradients are all that is wanted (saliency), or an engine steps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    ENGINES,
    bound_to,
    optimizers,
    source,
)
from trainwreck.code.order import (
    kind_of,
    repeated,
    training_steps,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.never_trained import never_trained
from trainwreck.code.rehearsal.questions.optimizing import never_steps, steps_outside
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()  # expect
""",
    """
from torch.optim import SGD
class Trainer:
    def __init__(self, model):
        self.opt = SGD(model.parameters(), lr=0.1)
    def fit(self, loader):
        for batch in loader:
            self.opt.zero_grad()
            self.model(batch).mean().backward()  # expect
""",
    """
import torch
import torch.nn.functional as F
class Trainer:
    def __init__(self, net):
        self.net = net
        self.optim = torch.optim.Adam(net.parameters())
        self.sched = torch.optim.lr_scheduler.StepLR(self.optim, 10)
    def batch(self, x, y):
        self.optim.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        loss.backward()  # expect
        return loss.item()
    def fit(self, loader):
        for x, y in loader:
            self.batch(x, y)
        self.sched.step()
""",
    """
import torch
class Pair:
    def __init__(self, enc, dec):
        self.enc_opt = torch.optim.Adam(enc.parameters())
        self.dec_opt = torch.optim.Adam(dec.parameters())
    def batch(self, x, y):
        for o in (self.enc_opt, self.dec_opt):
            o.zero_grad()
        self.loss(x, y).backward()  # expect
        self.dec_opt.step()
""",
    """
import torch
def train(actor, critic, loader):
    a_opt = torch.optim.Adam(actor.parameters())
    c_opt = torch.optim.Adam(critic.parameters())
    plan = torch.optim.lr_scheduler.StepLR(c_opt, 10)
    for s, r in loader:
        a_opt.zero_grad()
        c_opt.zero_grad()
        (actor(s).mean() + critic(s).mean()).backward()  # expect
        a_opt.step()
        plan.step()
""",
    """
import torch
import torch.nn.functional as F
def train(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        optimizer.step()  # expect
""",
)
GOOD = (
    """
import torch
def saliency(model, loader):
    for x, y in loader:
        model(x).max().backward()
""",
    """
import torch
from engine import update
def train(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        model(x).mean().backward()
        update(optimizer)
""",
    """
import torch
def train(model, loader, scaler):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        scaler.scale(model(x).mean()).backward()
        scaler.step(optimizer)
""",
    """
import torch
class Pair:
    def __init__(self, enc, dec):
        self.enc_opt = torch.optim.Adam(enc.parameters())
        self.dec_opt = torch.optim.Adam(dec.parameters())
        self.extra = torch.optim.SGD(enc.parameters(), lr=1.0)
    def batch(self, x, y):
        self.extra.zero_grad()
        for o in (self.enc_opt, self.dec_opt):
            o.zero_grad()
        self.loss(x, y).backward()
        for o in (self.enc_opt, self.dec_opt):
            o.step()
        self.apply(self.extra)
    def apply(self, optimizer):
        optimizer.step()
""",
)
GRADIENTS = pattern(r"backward|autograd|\.grad\b|\bgrad\(|value_and_grad|minimize|vjp|closure")
"""Words of which one stands in every program that computes gradients, in whatever way."""
QUIET = frozenset(
    ["zero_grad", "state_dict", "load_state_dict", "param_groups", "unscale_", "add_param_group", "defaults", "state"]
)
"""What may be asked of an optimizer without stepping it."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, [*_seen(project), *_no_gradient(project)], never_steps, steps_outside, never_trained
    )


def _no_gradient(project: Project) -> Iterator[Evidence]:
    """A step in a loop beside a ``zero_grad``, and no way in the whole program that a gradient could come from."""
    text = source(project)
    if ENGINES.search(text) or GRADIENTS.search(text):
        return
    names = {bound_to(project, built) for built in optimizers(project)} - {""}
    for call in project.calls("step"):
        own = written(call.receiver) if call.receiver is not None else ""
        zeroed = any(c.scope is call.scope and written(c.receiver) == own for c in _zeroed(project))
        if own in names and zeroed and repeated(project, call.scope, call.node):
            yield sighting(__name__, call, f"{own} steps, and nothing in the program ever runs backward()")
            return


def _zeroed(project: Project) -> list[Call]:
    return [c for c in project.calls("zero_grad") if c.receiver is not None]


def _seen(project: Project) -> Iterator[Evidence]:
    if ENGINES.search(source(project)) or not optimizers(project):
        return
    stepping = [
        c
        for c in project.calls("step", "optimizer_step", "apply", "fit", "minimize")
        if kind_of(project, c) not in ("scheduler", "environment")
        and (c.name == "step" or project.resolve(c.node.func, c.scope) is None)
    ]
    if stepping:
        yield from _left_out(project)
    if stepping or any(".step" in written(o.node) for o in optimizers(project)):
        return
    for built in optimizers(project):
        name = bound_to(project, built)
        if not name or _handed_on(project, name, built):
            continue
        for step in training_steps(project):
            again = repeated(project, step.scope, step.backward[0].node)
            if again and step.scope.module is built.scope.module:
                text = f"{name} is built, but nothing ever steps it after this"
                yield sighting(__name__, step.backward[0], text, proof=[built])
                return


def _left_out(project: Project) -> Iterator[Evidence]:
    """One of several optimizers that is zeroed before a backward, and that nothing can step: every use is known."""
    for built in optimizers(project):
        name = bound_to(project, built)
        last = name.rsplit(".", 1)[-1]
        uses = list(_uses(project, name, built)) if last and "," not in name else []
        if not uses or not all(_quiet(project, node, scope) for node, scope in uses):
            continue
        for step in training_steps(project):
            if step.scope.module is not built.scope.module:
                continue
            if any(scope is step.scope for _, scope in uses) or not step.steps:
                text = f"{name} is zeroed, but nothing ever steps it: its parameters keep their initial values"
                yield sighting(__name__, step.backward[0], text, proof=[built])
                break


def _uses(project: Project, name: str, built: Call) -> Iterator[tuple[ast.expr, Scope]]:
    """Every place that reads the optimizer. An attribute is looked for by its last part in the whole project."""
    last, attribute = name.rsplit(".", 1)[-1], "." in name
    for scope in project.scopes:
        for node in project.within(scope, ast.Attribute if attribute else ast.Name):
            if (isinstance(node, ast.Attribute) and node.attr == last and isinstance(node.ctx, ast.Load)) or (
                isinstance(node, ast.Name) and node.id == last and isinstance(node.ctx, ast.Load)
            ):
                yield node, scope


def _quiet(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for a use that can't step the optimizer."""
    above = project.parent(node, scope)
    if isinstance(above, ast.Attribute):
        return above.attr in QUIET
    if isinstance(above, ast.Call) and node in above.args:
        return last_name(above.func) == "unscale_" or "lr_scheduler" in project.called(Call(above, scope))
    if isinstance(above, ast.Tuple | ast.List):
        loop = project.parent(above, scope)
        if isinstance(loop, ast.For) and loop.iter is above and isinstance(loop.target, ast.Name):
            read = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == loop.target.id]
            return bool(read) and all(_quiet(project, n, scope) for n in read)
    return False


def _handed_on(project: Project, name: str, built: Call) -> bool:
    """True if the optimizer is given to something outside that may step it, or returned."""
    for walked in project.walked.values():
        for node, scope in walked.calls:
            for value in (*node.args, *(k.value for k in node.keywords)):
                if (
                    name in written(value).split(",")
                    and project.resolve(node.func, scope) is None
                    and "lr_scheduler" not in project.called(Call(node, scope))
                ):
                    return True
    called = {id(c.node.func) for c in project.calls("step")}
    tree = built.scope.module.tree
    return any(isinstance(n, ast.Attribute) and n.attr == "step" and id(n) not in called for n in ast.walk(tree))
