"""A distributed run in which every rank reads the whole data set.

What: the model is wrapped in DistributedDataParallel, a DistributedSampler is even made, and the loader does not
use it.
Why it matters: every rank does all the work: no speed-up, and each epoch sees every sample once per rank.
When it is fine: where the data are sharded otherwise, or a library prepares the loader.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.aliases import calls_to
from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.own_averaging import one_share, whole_order
from trainwreck.code.rehearsal.questions.ranks import whole_data
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import LOADERS, assigned_name, loaders
from trainwreck.code.surface import Surface
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

WORDS = PROCESSES
BAD = """
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
def main(train, net):
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 32, shuffle=True)  # expect
    model = DistributedDataParallel(net)
"""
GOOD = """
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
def main(train, val, net):
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 32, sampler=sampler)
    check = DataLoader(val, 32)
    model = DistributedDataParallel(net)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), whole_data, one_share, whole_order)


def _seen(project: Project) -> Iterator[Evidence]:
    if not any(True for _ in calls_to(project, "torch", "DistributedDataParallel")):
        return
    for sampler in project.calls("DistributedSampler"):
        name = assigned_name(project, sampler)
        if not name or _used(project, sampler, name):
            continue
        data = written(sampler.argument("dataset", 0))
        for call in project.calls(*LOADERS):
            if call.scope is sampler.scope and written(call.argument("dataset", 0)) == data and not _sampled(call):
                yield sighting(
                    __name__, call, f"{name} is made for these data and not given to the loader", proof=[sampler]
                )


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in loaders(project, surface):
        if not _sampled(call):
            yield guess(__name__, call, "this loader has no distributed sampler")
            return


def _sampled(call: Call) -> bool:
    return call.open_ended or any(call.argument(n) is not None for n in ("sampler", "batch_sampler"))


def _used(project: Project, sampler: Call, name: str) -> bool:
    """True if the sampler is handed to anything."""
    for node in ast.walk(sampler.scope.node):
        if isinstance(node, ast.Call) and node is not sampler.node:
            values = [*node.args, *(k.value for k in node.keywords)]
            if any(name in written(v) for v in values):
                return True
    return False
