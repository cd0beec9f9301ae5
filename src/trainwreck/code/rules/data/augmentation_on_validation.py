"""Evaluation data go through the training augmentation.

What: the data set class augments by default (``train=True``), and the test or validation set is built without
switching it off, or with the training transform.
Why it matters: the reported figure is that of distorted inputs and differs from read to read.
When it is fine: with test-time augmentation that is averaged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, default_of, last_name, written
from trainwreck.code.order import constructors
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.distorting import distorted
from trainwreck.code.rehearsal.questions.transforms import shared_transform
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import FunctionNode
from trainwreck.code.seek import assigned_name, dataset_classes
from trainwreck.code.values import is_false
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torchvision
from torchvision import transforms as T
train_tf = T.Compose([T.RandomHorizontalFlip(), T.ToTensor()])
plain = T.Compose([T.ToTensor()])
train_set = torchvision.datasets.CIFAR10("d", train=True, transform=train_tf)
val_set = torchvision.datasets.CIFAR10("d", train=False, transform=plain)
test_set = torchvision.datasets.CIFAR10("d", train=False, transform=train_tf)  # expect
""",
    """
import torch
from torch.utils.data import Dataset
class Images(Dataset):
    def __init__(self, n, train=True):
        self.train = train
    def __getitem__(self, i):
        x = self.x[i]
        if self.train:
            x = torch.roll(x, int(torch.randint(0, 3, (1,))))
        return x, self.y[i]
train_set = Images(100)
test_set = Images(20)  # expect
""",
)
GOOD = (
    """
import torch
from torch.utils.data import Dataset
class Images(Dataset):
    def __init__(self, n, train=True):
        self.train = train
    def __getitem__(self, i):
        x = self.x[i]
        if self.train:
            x = torch.roll(x, int(torch.randint(0, 3, (1,))))
        return x, self.y[i]
train_set = Images(100)
test_set = Images(20, train=False)
""",
    """
import torch
from torch import nn
class Denoiser(nn.Module):
    def __init__(self, net, levels):
        super().__init__()
        self.net, self.levels = net, levels
    def add_noise(self, x, t):
        noise = torch.randn_like(x)
        return self.levels[t] * x + (1 - self.levels[t]) * noise, noise
    def forward(self, x):
        noisy, noise = self.add_noise(x, torch.randint(0, 100, (1,)))
        return (self.net(noisy) - noise).pow(2).mean()
    @torch.no_grad()
    def between(self, one, other):
        first, second = self.add_noise(one, 99)[0], self.add_noise(other, 99)[0]
        return self.net(0.5 * first + 0.5 * second)
model = Denoiser(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)), torch.linspace(0, 1, 100))
opt = torch.optim.Adam(model.parameters())
for step in range(1000):
    images = torch.rand(8, 4)
    loss = model(images)
    opt.zero_grad()
    loss.backward()
    opt.step()
model.between(images[:1], images[1:2])
""",
)
SWITCH = pattern(r"^(train|training|augment|aug|is_train|augmentation)$")
HELD = pattern(r"(^|_)(va|val|valid|validation|dev|test|te|holdout|held|eval)(_|\d|$)", re.IGNORECASE)
RANDOM_TRANSFORM = pattern(
    r"^Random(?!Apply$|Choice$|Order$)|^ColorJitter$|^AutoAugment$|^TrivialAugment|^GaussianBlur$"
)
RANDOM = pattern(r"rand|jitter|flip|crop|noise|rotat|augment|roll|distort|normal\(", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), distorted, shared_transform)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _own(project)
    yield from _library(project)


def _library(project: Project) -> Iterator[Evidence]:
    """Sets of torchvision that say ``train=False`` (or ``split="test"``) and get a random transform."""
    for walked in project.walked.values():
        if "torchvision" not in walked.top.module.text:
            continue
        for node, scope in walked.calls:
            call = Call(node, scope)
            transform = call.argument("transform")
            if transform is None or not project.called(call).startswith("torchvision.datasets"):
                continue
            split = call.argument("split")
            held = isinstance(split, ast.Constant) and split.value in ("test", "val", "valid")
            if not held and not is_false(call.argument("train", 1)):
                continue
            for maker in constructors(project, transform, scope):
                inner = [last_name(n.func) for n in ast.walk(maker.node) if isinstance(n, ast.Call)]
                drawn = [n for n in inner if RANDOM_TRANSFORM.search(n)]
                if "torchvision" in project.called(maker) and drawn:
                    yield sighting(__name__, call, f"{drawn[0]} distorts these evaluation images", proof=[maker])
                    break


def _own(project: Project) -> Iterator[Evidence]:
    for owner in dataset_classes(project):
        init, getter = owner.method("__init__"), owner.method("__getitem__")
        if init is None or getter is None or not isinstance(init.node, FunctionNode):
            continue
        for name in init.params:
            default = default_of(init.node, name)
            if not SWITCH.match(name) or not (isinstance(default, ast.Constant) and default.value is True):
                continue
            guarded = any(
                f"self.{name}" in written(n.test) and RANDOM.search(_body(n))
                for n in ast.walk(getter.node)
                if isinstance(n, ast.If | ast.IfExp)
            )
            calls = [c for c in project.calls(owner.name) if project.resolve(c.node.func, c.scope) is owner]
            place = init.positional.index(name) - 1 if name in init.positional else None
            for call in calls if guarded else ():
                if call.argument(name, place) is None and not call.open_ended and _held(project, call, calls):
                    text = f"{owner.name} augments unless {name}=False is said, and this is evaluation data"
                    yield sighting(__name__, call, text)


def _body(node: ast.If | ast.IfExp) -> str:
    return " ".join(map(written, node.body)) if isinstance(node, ast.If) else written(node.body)


def _held(project: Project, call: Call, calls: list[Call]) -> bool:
    name = assigned_name(project, call)
    return bool(name) and bool(HELD.search(name)) and len(calls) > 1
