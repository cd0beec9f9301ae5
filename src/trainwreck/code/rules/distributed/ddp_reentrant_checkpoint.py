"""Reentrant activation checkpointing under DDP that looks for unused parameters.

What: ``DistributedDataParallel(..., find_unused_parameters=True)`` and ``checkpoint(...)`` with ``use_reentrant=True``
(still the default) in the same program.
Why it matters: the inner backward marks a parameter ready that DDP has marked before: it raises at the first step.
When it is fine: with ``use_reentrant=False``, with ``static_graph=True``, or without the search.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.aliases import calls_to
from trainwreck.code.calls import Call
from trainwreck.code.facts import only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch.utils.checkpoint import checkpoint
from torch.nn.parallel import DistributedDataParallel as DDP
class Net(torch.nn.Module):
    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=True)  # expect
model = DDP(Net(), find_unused_parameters=True)
""",
    """
import torch.utils.checkpoint as cp
from torch import nn
def run(block, x):
    return cp.checkpoint(block, x)  # expect
def main(net):
    options = dict(device_ids=[0], find_unused_parameters=True)
    return nn.parallel.DistributedDataParallel(net, **options)
""",
    """
import torch
def main(net, rank):
    net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})  # expect
    return torch.nn.parallel.DistributedDataParallel(net, [rank], find_unused_parameters=True)
""",
)
GOOD = """
import torch
from torch.utils.checkpoint import checkpoint
from torch.nn.parallel import DistributedDataParallel as DDP
class Net(torch.nn.Module):
    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)
model = DDP(Net(), find_unused_parameters=True)
def other(net):
    return torch.load("x"), net.checkpoint("a")
"""


def find(project: Project) -> Iterator[Evidence]:
    wraps = [
        c
        for c in calls_to(project, "torch", "DistributedDataParallel")
        if only(project, option(project, c, "find_unused_parameters")) is True
        and only(project, option(project, c, "static_graph")) in (None, False)
    ]
    if not wraps:
        return
    for call in project.calls("checkpoint", "checkpoint_sequential"):
        if not project.called(call).startswith("torch.utils.checkpoint") or any(
            k.arg is None for k in call.node.keywords
        ):
            continue
        if only(project, option(project, call, "use_reentrant")) in (None, True):
            yield _told(call, wraps[0])
    for call in project.calls("gradient_checkpointing_enable"):
        at = call.argument("gradient_checkpointing_kwargs", 0)
        if at is not None and _reentrant(at):
            yield _told(call, wraps[0])


def _told(call: Call, wrap: Call) -> Evidence:
    text = "the inner backward of reentrant checkpointing meets DDP's search for unused parameters"
    return sighting(__name__, call, text, proof=[wrap])


def _reentrant(node: ast.expr) -> bool:
    if not isinstance(node, ast.Dict):
        return False
    return any(
        isinstance(k, ast.Constant) and k.value == "use_reentrant" and isinstance(v, ast.Constant) and v.value is True
        for k, v in zip(node.keys, node.values, strict=True)
    )
