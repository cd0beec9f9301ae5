"""The optimizer does not hold parameters that should learn.

What: ``model.head = nn.Linear(...)`` (or an added module) stands below the construction of the optimizer, or below
the list of parameters that it is given; or a network, or a free parameter, that the loss depends on was given to
none.
Why it matters: the optimizer holds the old parameters; the others never change.
When it is fine: where the optimizer is built again, or ``add_param_group`` adds them; teachers and frozen networks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import optimizers
from trainwreck.code.flow import back
from trainwreck.code.order import OPTIMIZERS, position, under_no_grad
from trainwreck.code.params import KEEPERS, has_parameters, held, speaks_of_freezing
from trainwreck.code.phases import events
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.handed_gradients import stepped_elsewhere
from trainwreck.code.rehearsal.questions.optimizing import left_out, settled
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
def main(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.fc = nn.Linear(64, 10)  # expect
    for x, y in data():
        model(x).sum().backward()
        optimizer.step()
""",
    """
import torch
from torch import nn
class LowRank(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base = base
        self.up, self.down = nn.Linear(r, 4), nn.Linear(4, r)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
def inject(model, names):
    for n in names:
        setattr(model, n, LowRank(getattr(model, n), 4))
    return model
def main(loader, ce):
    model = Net()
    for p in model.parameters():
        p.requires_grad = False
    model.head.weight.requires_grad = True
    trainable = [p for p in model.parameters() if p.requires_grad]
    model = inject(model, ["fc1"])  # expect
    opt = torch.optim.AdamW(trainable, lr=5e-3)
    for x, y in loader:
        ce(model(x), y).backward()
        opt.step()
""",
    """
import torch
from torch import nn
def main(loader, ce):
    encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    head = nn.Linear(8, 2)
    opt = torch.optim.Adam(head.parameters(), lr=1e-3)  # expect
    for x, y in loader:
        loss = ce(head(encoder(x)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
from torch import nn
import torch.nn.functional as F
class Trainer:
    def __init__(self, net: nn.Linear):
        self.net = nn.Linear(4, 2)
        self.log_var = nn.Parameter(torch.zeros(2))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3)  # expect
    def step(self, x, y):
        loss = ((self.net(x) - y) ** 2 * torch.exp(-self.log_var) + self.log_var).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
""",
    """
import torch
from torch import nn
class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.heads = nn.Linear(4, 8), nn.ModuleDict()
    def attach(self, name, size):
        self.heads[name] = nn.Linear(8, size)
class Fitter:
    def __init__(self, net, lr):
        self.net = net
        self.optimizer = torch.optim.RMSprop(net.parameters(), lr=lr)
    def fit(self, batches):
        for x, y in batches:
            self.net(x, y).backward()
            self.optimizer.step()
def main(batches, sizes):
    net = Shared()
    fitter = Fitter(net, lr=2e-3)
    for name, size in sizes.items():
        net.attach(name, size)  # expect
    fitter.fit(batches)
""",
)
GOOD = (
    """
import torch
import torch.nn.functional as F
from torch import nn
a, b = nn.Linear(8, 4), nn.Linear(8, 16)
both = nn.ModuleList([a, b])
opt = torch.optim.Adam(both.parameters(), 1e-3)
for x, y, z in loader:
    loss = F.cross_entropy(a(x), y) + F.mse_loss(b(x), z)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch
from torch import nn
def main(model):
    model.fc = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.note = str(3)
def again(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.fc = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
""",
    """
import copy
import itertools
import torch
from torch import nn
def main(loader, ce):
    encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 4)
    opt = torch.optim.Adam(itertools.chain(encoder.parameters(), decoder.parameters()), lr=1e-3)
    probe, target = nn.Linear(8, 2), copy.deepcopy(encoder)
    probe_opt = torch.optim.SGD(probe.parameters(), lr=0.1)
    features = nn.Linear(4, 4)
    for x, y in loader:
        ce(decoder(encoder(x)), target(x)).backward()
        opt.step()
        with torch.no_grad():
            h = features(x)
        ce(probe(h), y).backward()
        probe_opt.step()
class Trainer:
    def __init__(self, groups):
        self.a, self.b = nn.Linear(4, 2), nn.Linear(2, 2)
        self.opt = torch.optim.AdamW(self.groups(), lr=1e-3)
    def groups(self):
        return [{"params": m.parameters()} for m in (self.a, self.b)]
    def step(self, x, y, ce):
        ce(self.b(self.a(x)), y).backward()
        self.opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), left_out, stepped_elsewhere)


def _seen(project: Project) -> Iterator[Evidence]:
    yield from _replaced(project)
    yield from _added(project)
    runs = rehearsals(project)
    if not runs or not all(settled(run) for run in runs):
        yield from _left_out(project)  # by names, where the rehearsal can't decide


def _added(project: Project) -> Iterator[Evidence]:
    """A function adds modules to the network after its parameters were collected."""
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        done = events(project, scope)
        for event in done:
            if event.kind != "add" or not isinstance(event.node, ast.Call):
                continue
            before = [e for e in done if position(e.node) < position(event.node)]
            later = [e for e in done if position(e.node) > position(event.node)]
            lists = {e.name for e in before if e.kind == "collect" and e.base == event.base}
            stale = [e for e in later if e.kind == "optimizer" and e.name in lists and e.name]
            built = [e for e in before if e.kind == "optimizer" and e.base == event.base]
            fresh = any(
                (e.kind == "optimizer" and not e.name and e.base == event.base)
                or (e.kind == "collect" and e.base == event.base)
                for e in later
            )
            unknown = any(e.kind == "optimizer" for e in later) and not stale
            if not fresh and not unknown and (stale or built):
                text = f"modules are added to {event.base} here, after its parameters were collected for the optimizer"
                proof = [
                    (e.scope.module.path, int(getattr(e.node, "lineno", 1)), "the optimizer") for e in stale or built
                ]
                yield sighting(__name__, (project.statement(event.node, scope), scope), text, proof=proof[-1:])
                break


def _left_out(project: Project) -> Iterator[Evidence]:
    """A network or parameter beside those of the optimizer, on the way to a loss that runs backward."""
    if speaks_of_freezing(project) or any(
        True for _ in project.calls("add_param_group", "DDP", "prepare", "initialize")
    ):
        return
    given: set[str] = set()
    built = optimizers(project)
    for call in built:
        items, complete = held(project, call)
        if not complete:
            return
        given |= {written(i.node).split("[")[0] for i in items}
    for call in built:
        home = call.scope.owner if call.scope.owner is not None else call.scope
        for name, maker in _learnable(project, call):
            if any(name == g or g.startswith(name + ".") or name.startswith(g + ".") for g in given):
                continue
            if KEEPERS.search(name.lower()) or not _used(project, name, home, given) or _looped(project, call, name):
                continue
            yield sighting(__name__, call, f"{name} is on the way to the loss and in no optimizer", proof=[maker])
            return


def _learnable(project: Project, call: Call) -> Iterator[tuple[str, Call]]:
    """Names beside the optimizer (variables, or attributes of its class) that are new networks or parameters."""
    owner = call.scope.owner
    tables = [(owner.attributes, "self.")] if owner is not None else []
    tables.append((call.scope.bindings, ""))
    if owner is not None and project.is_a(owner, "Module"):
        return
    for table, prefix in tables:
        for name, bindings in table.items():
            if len(bindings) != 1 or bindings[0].kind != "assign" or "." in name:
                continue
            value: ast.expr | None = bindings[0].value
            for part in bindings[0].path:
                fits = isinstance(value, ast.Tuple) and isinstance(part, int) and part < len(value.elts)
                value = value.elts[part] if fits and isinstance(value, ast.Tuple) and isinstance(part, int) else None
            while isinstance(value, ast.Call) and last_name(value.func) in ("to", "cuda", "double", "float", "train"):
                value = value.func.value if isinstance(value.func, ast.Attribute) else None
            if not isinstance(value, ast.Call):
                continue
            maker = Call(value, bindings[0].scope)
            parameter = last_name(value.func) == "Parameter" and "requires_grad=False" not in written(value)
            if parameter or has_parameters(project, maker):
                yield prefix + name, maker


def _used(project: Project, name: str, home: Scope, given: set[str]) -> bool:
    """True if the thing is read, with gradients, on the way to a ``backward()`` in its own function or class, and
    handed to nothing that may keep it."""
    scopes = [home, *[c for c in home.children if c.kind == "function"]] if home.kind == "class" else [home]
    on_the_way = False
    for scope in scopes:
        for call in project.calls_by_scope.get(scope, ()):
            handed = [a for a in (*call.node.args, *(k.value for k in call.node.keywords)) if written(a) == name]
            if handed and not written(call.node.func).startswith(("torch.exp", "print", "len", "torch.nn.utils")):
                return False
            if (
                call.receiver is not None
                and written(call.receiver) == name
                and call.name in ("eval", "parameters", "state_dict")
            ):
                return False
            if call.name != "backward" or call.receiver is None:
                continue
            for step in back(project, call.receiver, call.scope):
                node = step.node
                mine = isinstance(node, ast.Call) and written(node.func) == name
                mine = mine or (isinstance(node, ast.Name | ast.Attribute) and written(node) == name)
                if mine and under_no_grad(project, node, step.scope) is None and step.scope in scopes:
                    cut = any(isinstance(s.node, ast.Call) and last_name(s.node.func) == "detach" for s in step.chain())
                    on_the_way |= not cut
    return on_the_way and bool(given)


def _replaced(project: Project) -> Iterator[Evidence]:
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        built = [c for name in OPTIMIZERS for c in project.calls(name) if c.scope is scope]
        if not built or any(c.scope is scope for c in project.calls("add_param_group")):
            continue
        moved = [c.line for c in project.calls("step") if c.scope is scope]
        for name, bindings in scope.bindings.items():
            base, _, attribute = name.partition(".")
            if not attribute:
                continue
            for binding in bindings:
                again = any(isinstance(a, ast.For | ast.While) for a in project.ancestors(binding.node, scope))
                if moved and max(moved) < binding.line and not again:
                    continue  # the training is over: a layer is folded into another for later use
                before = [c for c in built if c.line < binding.line and _covers(project, c, base)]
                after = [
                    c
                    for c in built
                    if c.line > binding.line and (_covers(project, c, base) or f"{name}." in written(c.node))
                ]
                if before and not after and binding.kind == "assign" and _layer(project, binding.value, scope):
                    text = f"{base}.{attribute} is replaced here, after the optimizer took its parameters"
                    yield sighting(__name__, (binding.node, scope), text, proof=before[-1:])


def _covers(project: Project, call: Call, base: str) -> bool:
    """True if the optimizer is built from the parameters of ``base`` (directly, or through a name)."""
    texts = [written(a) for a in (*call.node.args[:1], *(k.value for k in call.node.keywords if k.arg == "params"))]
    for argument in call.node.args[:1]:
        if isinstance(argument, ast.Name):
            texts += [written(b.value) for b in project.lookup(argument.id, call.scope) if b.value is not None]
    return any(f"{base}.parameters" in t or f"{base}.named_parameters" in t for t in texts)


def _looped(project: Project, call: Call, base: str) -> bool:
    """True if the optimizer is built for each of several networks, and ``base`` is one of them."""
    around = [c.iter for a in project.ancestors(call.node, call.scope) for c in getattr(a, "generators", ())]
    around += [a.iter for a in project.ancestors(call.node, call.scope) if isinstance(a, ast.For)]
    return any(isinstance(n, ast.Name) and n.id == base for i in around for n in ast.walk(i))


def _layer(project: Project, value: ast.expr | None, scope: Scope) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = project.dotted(value.func, scope)
    if name.startswith("torch.nn.") and last_name(value.func)[:1].isupper() and "Loss" not in name:
        return True
    owner = project.class_of(value, scope)
    return owner is not None and project.is_a(owner, "Module")
