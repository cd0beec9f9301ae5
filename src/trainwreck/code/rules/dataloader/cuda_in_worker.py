"""CUDA inside a data-loader worker.

What: a data set or ``collate_fn`` moves tensors to the GPU while the loader has worker processes.
Why it matters: forked workers cannot initialise CUDA again: the first batch raises.
When it is fine: with ``num_workers=0`` or a spawn context; otherwise move the batch in the training loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    is_torch,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __getitem__(self, i):
        return self.x[i].cuda(), self.y[i]  # expect
def main():
    loader = DataLoader(Data(), batch_size=8, num_workers=4)
""",
    """
import torch
from torch.utils.data import DataLoader
def collate(batch):
    return torch.stack(batch).to("cuda")  # expect
def main(ds):
    return DataLoader(ds, collate_fn=collate, num_workers=2)
""",
    """
import torch
from torch.utils.data import DataLoader, Dataset
device = torch.device("cuda")
class Data(Dataset):
    def __getitem__(self, i):
        return torch.tensor(self.rows[i], device=device)  # expect
loader = DataLoader(Data(), num_workers=2)
""",
)
GOOD = """
import torch
from torch.utils.data import DataLoader, Dataset
device = torch.device("cuda")
class Data(Dataset):
    def __init__(self, x):
        self.x = x
    def __getitem__(self, i):
        return self.x[i].to("cpu")
class OnGpu(Dataset):
    def __getitem__(self, i):
        return self.x[i].cuda()
def main(x):
    a = DataLoader(Data(x), num_workers=4)
    b = DataLoader(OnGpu(), num_workers=0)
    for batch in a:
        batch.to(device)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*LOADERS):
        workers = only(project, option(project, call, "num_workers", 5))
        if not isinstance(workers, int) or workers < 1 or not is_torch(project, call):
            continue
        if option(project, call, "multiprocessing_context") is not None or "spawn" in call.scope.module.text:
            continue
        for function in _run_by_workers(project, call):
            for inner in project.calls_by_scope.get(function, ()):
                if _cuda(project, inner):
                    text = "this runs in a worker process of the loader, which can't use CUDA"
                    yield sighting(__name__, inner, text, proof=[call])
                    break


def _run_by_workers(project: Project, call: Call) -> Iterator[Scope]:
    dataset = call.argument("dataset", 0)
    owner = project.class_of(dataset, call.scope) if dataset is not None else None
    if owner is not None:
        for name in ("__getitem__", "__iter__", "__getitems__"):
            if (method := project.find_method(owner, name)) is not None:
                yield method
    at = option(project, call, "collate_fn", 6)
    function = project.resolve(*at) if at is not None else None
    if function is not None and function.kind == "function":
        yield function


def _cuda(project: Project, call: Call) -> bool:
    if call.name == "cuda" and call.receiver is not None and written(call.receiver) != "torch":
        return True
    at = call.argument("device") if call.name != "to" else call.argument("device", 0)
    if at is None:
        return False
    for node, _scope in ends(project, at, call.scope):
        text = written(node)
        if text.startswith(("'cuda", "torch.device('cuda")) and "if" not in text:
            continue
        return False
    return True
