"""Gradients of an FSDP model are clipped by their local shard.

What: ``torch.nn.utils.clip_grad_norm_`` over the parameters of a model that ``FullyShardedDataParallel`` wraps.
Why it matters: each rank sees the norm of its own shard only and scales by another factor: the direction of the
step changes, and ranks drift.
When it is fine: with ``model.clip_grad_norm_(max_norm)``, with ``fully_shard`` (FSDP2, whose DTensor gradients are
reduced by the function), or without sharding (NO_SHARD).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import made
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
def main(net, loader):
    model = FSDP(net)
    opt = torch.optim.AdamW(model.parameters())
    for x in loader:
        model(x).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect
        opt.step()
        opt.zero_grad()
""",
    """
import torch.distributed.fsdp as fsdp
from torch.nn.utils import clip_grad_norm_
class Runner:
    def __init__(self, net):
        self.model = fsdp.FullyShardedDataParallel(net, use_orig_params=True)
    def step(self, loss):
        loss.backward()
        norm = clip_grad_norm_(self.model.parameters(), max_norm=0.5)  # expect
""",
    """
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
def wrap(net):
    return FullyShardedDataParallel(net, device_id=0)
def train(net, batches):
    sharded = wrap(net)
    params = sharded.parameters()
    for x in batches:
        sharded(x).backward()
        nn.utils.clip_grad_norm_(params, 1.0)  # expect
""",
)
GOOD = """
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
def main(net, other, third, fourth):
    model = FSDP(net)
    model.clip_grad_norm_(1.0)
    ddp = DDP(other)
    torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
    fully_shard(third)
    torch.nn.utils.clip_grad_norm_(third.parameters(), 1.0)
    copy = FSDP(fourth, sharding_strategy=ShardingStrategy.NO_SHARD)
    torch.nn.utils.clip_grad_norm_(copy.parameters(), 1.0)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("clip_grad_norm_"):
        if not project.called(call).startswith("torch.nn.utils") or not call.node.args:
            continue
        given: ast.expr = call.node.args[0]
        if isinstance(given, ast.Name):
            sources = [c for c in made(project, given, call.scope) if c.name == "parameters"]
            given = sources[0].node if len(sources) == 1 else given
        if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
            continue
        wrap = next((c for c in made(project, given.func.value, call.scope) if _shards(project, c)), None)
        if wrap is not None and given.func.attr == "parameters":
            text = "this is the norm of one rank's shard, and every rank scales by its own"
            yield sighting(__name__, call, text, proof=[wrap])


def _shards(project: Project, call: Call) -> bool:
    full = project.called(call)
    return full.endswith(".FullyShardedDataParallel") and "NO_SHARD" not in written(call.node)
