"""Batch norm under DDP on tiny batches, without synchronisation.

What: a model with batch norm is wrapped in DDP, its training batch is four samples per process or fewer, and nothing
converts it to ``SyncBatchNorm``.
Why it matters: statistics of so few samples are noisy, differ between ranks, and the running ones come from rank 0.
When it is fine: with frozen batch norm, or with many values per channel (dense prediction on large images).
Threshold: error rises steeply at 4 and 2 images per worker (Wu and He 2018, Group Normalization, figure 1).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.aliases import calls_to
from trainwreck.code.calls import Call
from trainwreck.code.facts import BATCHNORMS, is_torch, made, option, source, text_of
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.replicated import tiny_norms
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS, is_training_loader
from trainwreck.code.topics import PROCESSES
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

WORDS = PROCESSES
BAD = (
    """
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)
def main(rank, train_set, sampler):
    model = DDP(Net().to(rank))  # expect
    train_loader = DataLoader(train_set, batch_size=2, sampler=sampler)
""",
    """
import torch
from torch import nn
BATCH = 4
def conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b), nn.ReLU())
class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = conv(1, 8)
net = nn.parallel.DistributedDataParallel(Unet())  # expect
train_dl = torch.utils.data.DataLoader([], BATCH, shuffle=True)
""",
    """
import torch, torchvision
model = torchvision.models.resnet50()
model = torch.nn.parallel.DistributedDataParallel(model)  # expect
loader = torch.utils.data.DataLoader([], batch_size=1, shuffle=True)
""",
)
GOOD = (
    """
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(8)
def main(train_set):
    model = nn.SyncBatchNorm.convert_sync_batchnorm(Net())
    model = DDP(model)
    return DataLoader(train_set, batch_size=2, shuffle=True)
""",
    """
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(8)
def main(train_set):
    return DDP(Net()), DataLoader(train_set, batch_size=32, shuffle=True)
""",
    """
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(4, 8)
def main(train_set):
    return DDP(Net()), DataLoader(train_set, batch_size=2, shuffle=True)
""",
)
TINY = 4
WITH_NORM = pattern(
    r"^torchvision\.models\.(resnet|resnext|wide_resnet|densenet|mobilenet|efficientnet|regnet|vgg\d+_bn)"
)


def find(project: Project) -> Iterator[Evidence]:
    if re.search(
        r"SyncBatchNorm|sync_batchnorm|sync_bn|syncbn|FrozenBatchNorm|freeze_bn", source(project), re.IGNORECASE
    ):
        return
    yield from further(__name__, project, _written(project), tiny_norms)


def _written(project: Project) -> Iterator[Evidence]:
    for wrap in calls_to(project, "torch", "DistributedDataParallel"):
        norm = _norm(project, wrap)
        loader = next((c for c in _loaders(project)), None)
        if norm is not None and loader is not None:
            size = number(project, *_batch(project, loader))
            text = f"batch norm sees {int(size or 0)} samples per process, each rank for itself"
            yield sighting(__name__, wrap, text, proof=[loader, norm])
            return


def _batch(project: Project, loader: Call) -> tuple[ast.expr | None, Scope]:
    return option(project, loader, "batch_size", 1) or (None, loader.scope)


def _loaders(project: Project) -> Iterator[Call]:
    """Training loaders with a batch size that is known and tiny; none where another one is not."""
    training = [c for c in project.calls(*LOADERS) if is_torch(project, c) and is_training_loader(project, c)]
    sizes = [number(project, *_batch(project, c)) for c in training]
    if sizes and all(s is not None and s <= TINY for s in sizes):
        yield from training


def _norm(project: Project, wrap: Call) -> tuple[str, int, str] | Call | None:
    """A batch norm in the wrapped model."""
    if not wrap.node.args:
        return None
    owner = project.class_of(wrap.node.args[0], wrap.scope)
    if owner is None:
        known = [c for c in made(project, wrap.node.args[0], wrap.scope) if WITH_NORM.search(project.called(c))]
        return known[0] if known else None
    for scope in (*project.bases(owner), *_helpers(project, owner)):
        for inner in project.calls(*sorted(BATCHNORMS)):
            if inner.scope is scope or inner.scope.parent is scope:
                return inner
    return None


def _helpers(project: Project, owner: Scope) -> Iterator[Scope]:
    """Functions and classes of the project whose name the class mentions."""
    text = text_of(project, owner)
    for scope in (*project.functions, *project.classes):
        if scope is not owner and re.search(rf"\b{re.escape(scope.name)}\(", text):
            yield scope
