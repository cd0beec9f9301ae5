"""Several GPUs in one process.

What: ``nn.DataParallel(model)`` for training.
Why it matters: one Python process feeds all GPUs and gathers on the first: slower than one process per GPU, and
uneven in memory.
When it is fine: for quick inference on two GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    trains,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
def main(model, loader):
    model = nn.DataParallel(model).cuda()  # expect
    for x in loader:
        model(x).sum().backward()
""",
    """
import torch
net = torch.nn.DataParallel(build(), device_ids=[0, 1])  # expect
def train(x):
    net(x).mean().backward()
""",
)
GOOD = """
import torch
from torch.nn.parallel import DistributedDataParallel
def main(model, loader):
    if isinstance(model, torch.nn.DataParallel):
        model = model.module
    model = DistributedDataParallel(model)
    for x in loader:
        model(x).sum().backward()
"""


def find(project: Project) -> Iterator[Evidence]:
    if not trains(project):
        return
    for call in project.calls("DataParallel"):
        if project.called(call).startswith("torch.nn"):
            yield sighting(
                __name__, call, "DistributedDataParallel with one process per GPU is faster, also on one machine"
            )
