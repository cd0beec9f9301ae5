"""What is held and never learned, streams that are not divided, files of all ranks, maps of scores, rows of a whole.

``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked, program
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.collectives import saved_by_all
from trainwreck.code.rehearsal.questions.cutoff import frozen_group, used_as_numbers
from trainwreck.code.rehearsal.questions.scores import chosen_along_another
from trainwreck.code.rehearsal.questions.workers import unsharded

HELD = """
import torch, torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 1)
        self.scale = nn.Parameter(torch.zeros(()))
    def forward(self, x):
        return SCALED
net = Net()
FREEZE
opt = torch.optim.Adam(GROUPS)
for step in range(100):
    x = torch.randn(32, 8)
    loss = (net(x)[:, 0] - x[:, 0]).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
"""
WHOLE = "self.head(torch.relu(self.body(x))) * self.scale.exp()"
TWO = '[{"params": net.body.parameters(), "lr": 1e-4}, {"params": net.head.parameters(), "lr": 1e-3}]'


def held(scaled: str = WHOLE, freeze: str = "", groups: str = "net.parameters()") -> str:
    return HELD.replace("SCALED", scaled).replace("FREEZE", freeze).replace("GROUPS", groups)


STREAM = """
import itertools
import torch, torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
class Numbers(IterableDataset):
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        WALK
            yield torch.full((4,), float(i))
def go(data, net):
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x in DataLoader(data, 8, num_workers=2):
        loss = net(x).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
go(Numbers(1000), nn.Linear(4, 1))
"""
RANKS = """
import torch, torch.nn as nn
import torch.distributed as dist
import torch.multiprocessing as mp
def work(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    net = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(10):
        loss = net(torch.randn(8, 4) + rank).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    SAVE
if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
"""
MAPS = """
import numpy as np
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
maps = np.zeros((64, 12, 12), dtype=np.int64)
for i in range(64):
    for c in range(1, 3):
        maps[i][np.random.rand(12, 12) < 0.2] = c
x = np.random.randn(3, 5)[maps].transpose(0, 3, 1, 2).astype(np.float32)
data = TensorDataset(torch.from_numpy(x), torch.from_numpy(maps))
net = nn.Conv2d(5, 3, 3, padding=1)
opt = torch.optim.Adam(net.parameters())
for a, b in DataLoader(data, 8):
    loss = nn.functional.cross_entropy(net(a), b)
    opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad():
    for a, b in DataLoader(data, 8):
        print(torch.bincount((b * 3 + CHOSEN).flatten()))
"""
CASES: list[tuple[Question, str]] = [
    (used_as_numbers, held("self.head(torch.relu(self.body(x))) * self.scale.exp().item()  # here")),
    (used_as_numbers, held("self.head(torch.relu(self.body(x))) + self.scale.detach()  # here")),
    (used_as_numbers, held()),
    (used_as_numbers, held("self.head(torch.relu(self.body(x)))")),
    (frozen_group, held(freeze="for p in net.body.parameters(): p.requires_grad_(False)  # here", groups=TWO)),
    (frozen_group, held(freeze="for p in net.parameters(): p.requires_grad = False  # here", groups=TWO)),
    (frozen_group, held(freeze="for p in net.body.parameters(): p.requires_grad_(False)")),
    (frozen_group, held(groups=TWO)),
    (unsharded, STREAM.replace("WALK", "for i in range(self.n):  # here")),
    (unsharded, STREAM.replace("WALK", "for i in range(first, self.n, stride):")),
    (unsharded, STREAM.replace("WALK", "for i in itertools.islice(range(self.n), first, None, stride):")),
    (unsharded, STREAM.replace("WALK", "for i in range(self.n):\n            if i % stride != first: continue")),
    (unsharded, STREAM.replace("WALK", "for i in range(self.n):").replace("num_workers=2", "num_workers=0")),
    (saved_by_all, RANKS.replace("SAVE", "torch.save(net.module.state_dict(), 'last.pt')  # here")),
    (saved_by_all, RANKS.replace("SAVE", "torch.save(net.module.state_dict(), f'last{rank}.pt')")),
    (saved_by_all, RANKS.replace("SAVE", "if rank == 0:\n        torch.save(net.module.state_dict(), 'last.pt')")),
    (saved_by_all, RANKS.replace("SAVE", "if rank: return\n    torch.save(net.module.state_dict(), 'last.pt')")),
    (chosen_along_another, MAPS.replace("CHOSEN", "net(a).argmax(-1)").replace("flatten()))", "flatten()))  # here")),
    (
        chosen_along_another,
        MAPS.replace("CHOSEN", "net(a).max(dim=2)[1]").replace("flatten()))", "flatten()))  # here"),
    ),
    (chosen_along_another, MAPS.replace("CHOSEN", "net(a).argmax(1)")),
    (chosen_along_another, MAPS.replace("CHOSEN", "net(a).permute(0, 2, 3, 1).argmax(-1)")),
]


@pytest.mark.parametrize(("question", "text"), CASES)
def test_cut_off(question: Question, text: str) -> None:
    assert answered(question, text) == marked(text)


def test_a_row_that_is_written_into_changes_the_whole() -> None:
    run = rehearsals(Project(program(MAPS.replace("CHOSEN", "net(a).argmax(1)"))))[0]
    whole = [n for n in run.nodes if n.op == "setitem"][-1]
    image = next(n for n in run.nodes if n.op == "transpose")
    assert str(whole.shape) == "(64, 12, 12)"
    assert str(image.shape) == "(64, 5, 12, 12)"
