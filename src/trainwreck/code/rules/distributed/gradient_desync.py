"""Ranks train on different data and never exchange gradients.

What: ``init_process_group`` and a ``DistributedSampler``, but the model is not wrapped (DDP, FSDP) and nothing
reduces gradients. Collectives that carry losses, counters or results are no exchange of gradients.
Why it matters: each rank trains a model of its own on its share of the data; the saved one saw a part only.
When it is fine: where an engine wraps it, or gradients or weights are averaged by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import ENGINES, HELD, bound_to, is_torch, made, optimizers, reach, source, text_of
from trainwreck.code.order import TrainingStep, training_steps
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.collectives import summed_only
from trainwreck.code.rehearsal.questions.own_averaging import never_averaged
from trainwreck.code.rehearsal.questions.played_ranks import apart
from trainwreck.code.rehearsal.questions.wrapping import averaged_late, joined_late, never_synced, passed_by
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

_JOB = """
import torch, torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 3)
    def encode(self, x):
        return self.body(x).relu()
    def forward(self, x):
        return self.head(self.encode(x))
def worker(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    ds = TensorDataset(torch.randn(1000, 8), torch.randint(0, 3, (1000,)))
    loader = DataLoader(ds, 32, sampler=DistributedSampler(ds, world, rank))
SETUP    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in loader:
        opt.zero_grad()
STEP        opt.step()
"""


def _job(setup: str, step: str) -> str:
    return _JOB.replace("SETUP", setup).replace("STEP", step)


WORDS = (*PROCESSES, ".grad")
BAD = (
    """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
def main(ds, model):
    dist.init_process_group("nccl")
    loader = DataLoader(ds, sampler=DistributedSampler(ds))  # expect
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
""",
    """
import torch
def run(rank, world, ds, net):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    sampler = torch.utils.data.distributed.DistributedSampler(ds, world, rank)  # expect
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x in torch.utils.data.DataLoader(ds, sampler=sampler):
            net(x).sum().backward()
            net.opt.step()
            net.opt.zero_grad()
""",
    """
import torch, torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
def worker(rank, ds):
    dist.init_process_group("gloo", rank=rank)
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    net = nn.Linear(4, 2)  # expect
    opt = torch.optim.AdamW(net.parameters())
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown)
    rows = [None, None]
    dist.all_gather(rows, shown)
""",
    _job(
        """    net = DistributedDataParallel(Net())
""",
        """        h = net.module.encode(x)  # expect
        nn.functional.cross_entropy(net.module.head(h), y).backward()
""",
    )
    + """    net.eval()
    print(net(ds.tensors[0]).argmax(1))
""",
    _job(
        """    net = DistributedDataParallel(Net())
""",
        """        with net.no_sync():  # expect
            nn.functional.cross_entropy(net(x), y).backward()
""",
    ),
    _job(
        """    net = DistributedDataParallel(Net())
    net.module.head = nn.Linear(16, 3)  # expect
""",
        """        nn.functional.cross_entropy(net(x), y).backward()
""",
    ),
)
GOOD = (
    """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
def main(ds, model):
    dist.init_process_group("nccl")
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    model = DDP(model)
    for x in loader:
        model(x).sum().backward()
        model.opt.step()
        model.opt.zero_grad()
""",
    """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as Wrap
from torch.utils.data import DataLoader, DistributedSampler
def main(ds, make):
    dist.init_process_group("nccl")
    net = Wrap(make())
    for x in DataLoader(ds, sampler=DistributedSampler(ds)):
        net(x).sum().backward()
        net.opt.step()
        net.opt.zero_grad()
""",
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
def sync(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
def main(ds, model, opt):
    dist.init_process_group("nccl")
    for x in DataLoader(ds, sampler=DistributedSampler(ds)):
        model(x).sum().backward()
        sync(model)
        opt.step()
        opt.zero_grad()
""",
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
def main(ds, model, opt):
    dist.init_process_group("nccl")
    for x in DataLoader(ds, sampler=DistributedSampler(ds)):
        model(x).sum().backward()
        for group in opt.param_groups:
            for w in group["params"]:
                dist.all_reduce(w.grad)
        opt.step()
        opt.zero_grad()
""",
    """
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from recipes import sharding
from speech.parallel import with_shared_gradients
def main(ds, model, opt, shard):
    dist.init_process_group("nccl")
    if shard:
        sharding.split_layers(model, offload=False)
    else:
        model = with_shared_gradients(model)
    for x in DataLoader(ds, sampler=DistributedSampler(ds)):
        model(x).sum().backward()
        opt.step()
        opt.zero_grad()
""",
    _job(
        """    net = DistributedDataParallel(Net())
""",
        """        parts = list(zip(x.chunk(2), y.chunk(2)))
        with net.no_sync():
            nn.functional.cross_entropy(net(parts[0][0]), parts[0][1]).backward()
        nn.functional.cross_entropy(net(parts[1][0]), parts[1][1]).backward()
""",
    ),
    _job(
        """    core = Net()
    core.head = nn.Linear(16, 3)
    net = DistributedDataParallel(core)
""",
        """        nn.functional.cross_entropy(net(x), y).backward()
""",
    ),
)
WRAPPERS = pattern(
    r"DistributedDataParallel$|^DDP$|FSDP|FullyShard|^fully_shard$|^replicate$|^parallelize|^average_"
    r"|^distribute_module$|^DistributedOptimizer$|^ZeroRedundancyOptimizer$|^sync_grad|^reduce_grad|^all_?reduce_.+"
    r"|^all_gather_.*(grad|param)|^broadcast_buffers$|^prepare$"
)
"""Calls after which gradients (or weights) are exchanged, by the library or by a function that is named so."""
EXCHANGES = frozenset(
    ["all_reduce", "all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "reduce"]
)
OF_WEIGHTS = pattern(r"grad|param|weight|bucket|flat|delta|state_dict")

NETWORK = pattern(r"(^|_)(model|net|network|module|policy)$", re.IGNORECASE)
HARMLESS = frozenset(
    """torch torchvision torchaudio numpy copy builtins peft transformers timm torchinfo torchsummary thop fvcore wandb
    logging json os sys""".split()
)
"""Packages whose functions exchange no gradients of the model that they get, or are looked at above."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__,
        project,
        _seen(project),
        passed_by,
        joined_late,
        never_synced,
        averaged_late,
        summed_only,
        apart,
        never_averaged,
    )


def _seen(project: Project) -> Iterator[Evidence]:
    if ENGINES.search(source(project)) or not any(is_torch(project, c) for c in project.calls("init_process_group")):
        return
    steps = [s for s in training_steps(project) if s.steps]
    if not steps or _wrapped(project) or any(_exchanges(project, s) for s in steps) or _handed_over(project):
        return
    for call in project.calls("DistributedSampler"):
        if is_torch(project, call) and not HELD.search(bound_to(project, call)):
            backward = steps[0].backward[0]
            model = _model(project, steps[0].scope)
            text = "each rank trains on its own share of the data, and gradients are never exchanged"
            yield sighting(__name__, model or call, text, proof=[call, backward])
            return


def _wrapped(project: Project) -> bool:
    """True if anything is called that wraps a model; a name that is only imported, or handed on, decides too."""
    if any(WRAPPERS.search(name) for name in project.calls_by_name):
        return True
    for walked in project.walked.values():
        imports = [b for scope in walked.scopes for bs in scope.bindings.values() for b in bs if b.kind == "import"]
        aliases = {b.name: b.target.rsplit(".", 1)[-1] for b in imports}
        for node in ast.walk(walked.top.module.tree):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                above = walked.parents.get(node)
                name = aliases.get(node.id, node.id) if isinstance(node, ast.Name) else node.attr
                called = isinstance(above, ast.Call) and last_name(above.func) == "isinstance"
                if WRAPPERS.search(name) and not called and name != "prepare":
                    return True
    return False


def _handed_over(project: Project) -> bool:
    """True if a function that is not in sight gets the model: it may wrap or shard it."""
    for call in (c for calls in project.calls_by_name.values() for c in calls):
        first = written(call.node.func).split(".")[0]
        if not any(b.kind == "import" for b in project.lookup(first, call.scope)):
            continue
        if project.called(call).split(".")[0] in HARMLESS or project.resolve(call.node.func, call.scope) is not None:
            continue
        if any(isinstance(a, ast.Name | ast.Attribute) and NETWORK.search(last_name(a)) for a in call.node.args):
            return True
    return False


def _exchanges(project: Project, step: TrainingStep) -> bool:
    """True if a collective in (or called from) the training step may carry gradients or weights."""
    for call in reach(project, step.body, step.scope):
        if call.name not in EXCHANGES:
            continue
        around = text_of(project, call.scope) if call.scope is not step.scope else written(call.node)
        loops = [a for a in project.ancestors(call.node, call.scope) if isinstance(a, ast.For)]
        if OF_WEIGHTS.search(around) or any(OF_WEIGHTS.search(written(a.iter)) for a in loops):
            return True
        name = getattr(call.scope.node, "name", "") if call.scope is not step.scope else ""
        handed = [c for c in project.calls(name) if c.scope is step.scope] if name else []
        if any(OF_WEIGHTS.search(written(v)) for c in handed for v in c.node.args):
            return True
    hooks = any(project.calls_by_name.get(n) for n in ("register_hook", "register_post_accumulate_grad_hook"))
    return hooks and any(project.calls_by_name.get(n) for n in EXCHANGES)


def _model(project: Project, scope: Scope) -> Call | None:
    """The call that builds the network whose parameters the optimizer of ``scope`` gets."""
    for optimizer in optimizers(project):
        if optimizer.scope is not scope or not optimizer.node.args:
            continue
        given = optimizer.node.args[0]
        if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters":
            built = made(project, given.func.value, scope)
            return built[0] if len(built) == 1 else None
    return None
