"""Parameters that should learn are frozen.

What: a new head is put into the network and then frozen with the rest; or a part of a network that was just made,
with random weights and nothing loaded into it, is frozen before it was ever trained.
Why it matters: the optimizer skips it without a word; the network learns only around random weights.
When it is fine: after loading weights, after an earlier phase of training, for teachers and target networks, for
random features on purpose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import network, optimizers, source, trains
from trainwreck.code.order import position
from trainwreck.code.params import KEEPERS, builds
from trainwreck.code.pattern import pattern
from trainwreck.code.phases import ADAPTER, Event, covers, events
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.cutoff import frozen_group
from trainwreck.code.rehearsal.questions.freezing import frozen_at_start, new_frozen, still_frozen, taught_before
from trainwreck.code.rehearsal.questions.idle_terms import left_frozen
from trainwreck.code.rehearsal.questions.name_tests import misspelt
from trainwreck.code.rehearsal.questions.one_network import frozen_with_copy
from trainwreck.code.rehearsal.questions.unused import never_called
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torchvision
from torch import nn
def main(loader, ce):
    model = torchvision.models.resnet18(weights="DEFAULT")
    model.fc = nn.Linear(512, 10)
    for p in model.parameters():
        p.requires_grad = False  # expect
    model.layer4.requires_grad_(True)
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for x, y in loader:
        ce(model(x), y).backward()
        opt.step()
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)
    def forward(self, x):
        return self.head(self.encoder(x))
def main(loader, ce):
    net = Net()
    net.encoder.requires_grad_(False)  # expect
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        ce(net(x), y).backward()
        opt.step()
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.fc = nn.Linear(8, 2)
def freeze(module):
    for p in module.parameters():
        p.requires_grad = False
def build():
    net = Net()
    freeze(net.conv)  # expect
    return net
def main(loader, ce):
    net = build()
    opt = torch.optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), lr=0.1)
    for x, y in loader:
        ce(net(x), y).backward()
        opt.step()
""",
)
GOOD = (
    """
import torch
import torchvision
from torch import nn
def main(loader, ce):
    model = torchvision.models.resnet18(weights="DEFAULT")
    for p in model.parameters():
        p.requires_grad = False
    model.fc = nn.Linear(512, 10)
    other = torchvision.models.resnet18(weights="DEFAULT")
    other.fc = nn.Linear(512, 10)
    for n, p in other.named_parameters():
        p.requires_grad = n.startswith("fc")
    opt = torch.optim.Adam(model.fc.parameters(), lr=1e-3)
    for x, y in loader:
        ce(model(x), y).backward()
        opt.step()
""",
    """
import copy
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)
def fit(net, opt, loader, ce):
    for x, y in loader:
        ce(net(x), y).backward()
        opt.step()
def main(loader, ce):
    net = Net()
    fit(net, torch.optim.SGD(net.parameters(), lr=0.1), loader, ce)
    net.encoder.requires_grad_(False)
    fit(net, torch.optim.SGD(net.head.parameters(), lr=0.1), loader, ce)
    teacher = copy.deepcopy(net)
    teacher.requires_grad_(False)
""",
)
LOADED = pattern(
    r"load_state_dict|torch\.load|load_file|from_pretrained|pretrained|weights=|hub\.load|restore|checkpoint"
)
ALWAYS = (new_frozen, never_called, frozen_group, left_frozen, misspelt, still_frozen, frozen_with_copy)
RANDOM = pattern(r"random feature|reservoir|echo state|probe|adapter|lora|low.rank|fourier|extreme", re.IGNORECASE)
"""Programs in which layers with random weights are meant, or stand for ones that were trained elsewhere."""
TOGGLED = pattern(
    r"random feature|reservoir|echo state|probe|requires_grad_?\(?\s*=?\s*(True|flag|mode|value|train)", re.IGNORECASE
)


def find(project: Project) -> Iterator[Evidence]:
    text = source(project)
    alone = (frozen_at_start,) if not LOADED.search(text) and not RANDOM.search(text) else ()
    yield from further(__name__, project, _seen(project), *ALWAYS, *alone)


def _seen(project: Project) -> Iterator[Evidence]:
    if not trains(project):
        return
    text = source(project)
    untrained = not LOADED.search(text) and not TOGGLED.search(text)
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        done = events(project, scope)
        yield from _new_head(project, done)
        if untrained:
            yield from _never_trained(project, done, scope)


def _new_head(project: Project, done: list[Event]) -> Iterator[Evidence]:
    for event in done:
        if event.kind != "freeze" or event.test:
            continue
        added = [
            e for e in done if e.kind == "add" and e.base == event.base and position(e.node) < position(event.node)
        ]
        later = [e for e in done if position(e.node) > position(event.node)]
        if not added or any(ADAPTER.search(e.name) for e in added):
            continue
        names = {e.name.rsplit(".", 1)[-1] for e in added}
        thawed = any(
            e.kind == "thaw" and (e.base == event.base or any(covers(f"{event.base}.{n}", e.base) for n in names))
            for e in later
        )
        again = any(e.kind == "add" and e.base == event.base for e in later)
        if not thawed and not again:
            text = f"the new part of {event.base} is frozen here with the rest, and nothing unfreezes it"
            yield sighting(__name__, (event.node, event.scope), text, proof=[_line(e) for e in added[:1]])


def _never_trained(project: Project, done: list[Event], scope: Scope) -> Iterator[Evidence]:
    if len(optimizers(project)) != 1 or any(e.kind == "add" for e in done):
        return
    for event in done:
        root = event.base.split(".")[0] if not event.base.startswith("self.") else ".".join(event.base.split(".")[:2])
        if event.kind != "freeze" or event.test or KEEPERS.search(event.base.lower()) or ADAPTER.search(event.base):
            continue
        later = [e for e in done if position(e.node) > position(event.node)]
        if any(e.kind == "thaw" and (covers(root, e.base) or covers(e.base, root)) for e in later):
            continue
        if event.base == root or not _fresh(project, root, scope, event) or _single(project, event):
            continue
        if any(taught_before(run, event.node) for run in rehearsals(project)):
            continue
        text = f"{event.base} is frozen with the random weights that it was made with"
        yield sighting(__name__, (event.node, event.scope), text)


def _single(project: Project, event: Event) -> bool:
    """True where one parameter is set (a scale, a bias): its first value may be the one that is wanted."""
    owner: ast.expr | None = None
    match event.node:
        case ast.Assign(targets=[ast.Attribute(value=owner, attr="requires_grad")]):
            pass
        case ast.Call(func=ast.Attribute(value=owner, attr="requires_grad_")):
            pass
    return owner is not None and written(owner) == event.base and not network(project, owner, event.scope)


def _fresh(project: Project, root: str, scope: Scope, event: Event) -> bool:
    """True if ``root`` is a network that this scope makes itself."""
    try:
        node = ast.parse(root, mode="eval").body
    except SyntaxError:
        return False
    made_here = builds(project, ast.copy_location(node, event.node), scope)
    outside = [c for c in made_here if project.resolve(c.node.func, c.scope) is None]
    return bool(made_here) and not outside and "deepcopy" not in "".join(c.name for c in made_here)


def _line(event: Event) -> tuple[str, int, str]:
    return event.scope.module.path, int(getattr(event.node, "lineno", 1)), f"{event.name} is added"
