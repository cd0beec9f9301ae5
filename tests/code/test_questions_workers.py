"""What spawned workers of a loader are handed. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.workers import copied_generator, handles, local_functions

PROGRAM = """
import threading
import numpy as np
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

from elsewhere import unseen

def double(v):
    return 2 * v

def seeds(worker):
    np.random.seed(torch.initial_seed() % 2**32)

def anew(worker):
    info = torch.utils.data.get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)

class Compose:
    def __init__(self, steps):
        self.steps = steps
    def __call__(self, v):
        for step in self.steps:
            v = step(v)
        return v

class Rows(Dataset):
    def __init__(self, x, change):
        self.x, self.change = x, change
        EXTRA
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return self.change(self.x[i])

def main(workers=2, context="spawn"):
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    BEFORE
    change = CHANGE
    rows = Rows(torch.randn(64, 4), change)
    loader = DataLoader(rows, 8, OPTIONS)
    for x in loader:
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

if __name__ == "__main__":
    main()
"""
SPAWNED = "num_workers=workers, multiprocessing_context=context"


def program(change: str = "double", options: str = SPAWNED, before: str = "pass", extra: str = "pass") -> str:
    text = PROGRAM.replace("CHANGE", change).replace("OPTIONS", options)
    return text.replace("BEFORE", before).replace("EXTRA", extra)


def drawing(made: str, options: str = "num_workers=2", late: str = "pass") -> str:
    """A data set that draws from a generator of its own."""
    drawn = f"{late}\n        return self.x[i] + torch.from_numpy(self.rng.normal(size=4))"
    return program(options=options, extra=made).replace("return self.change(self.x[i])", drawn)


OWN = "if self.rng is None: self.rng = np.random.default_rng(torch.utils.data.get_worker_info().seed)"
CASES: list[tuple[Question, str]] = [
    (local_functions, program("lambda v: v + 1  # here")),
    (local_functions, program("Compose([double, lambda v: v + 1])  # here")),
    (local_functions, program("lambda v: v + 1  # here", 'num_workers=2, multiprocessing_context="forkserver"')),
    (local_functions, program("twice", before="def twice(v):  # here\n        return 2 * v")),
    (
        local_functions,
        program(
            options='num_workers=2, multiprocessing_context=mp.get_context("spawn"), collate_fn=collate',
            before="collate = lambda rows: torch.stack(rows)  # here",
        ),
    ),
    (local_functions, program("lambda v: v + 1  # here", "num_workers=2", 'mp.set_start_method("spawn")')),
    (local_functions, program("double", extra="self.more = {'late': lambda v: v}  # here")),
    (handles, program("double", extra="self.lock = threading.Lock()  # here")),
    (handles, program("double", extra="self.file = open('rows.bin', 'rb')  # here")),
    (copied_generator, drawing("self.rng = np.random.default_rng(1)  # here")),
    (copied_generator, drawing("self.rng = np.random.default_rng(1)  # here", late=OWN)),
    (
        copied_generator,
        drawing("self.rng = np.random.RandomState(3)  # here", "num_workers=4, persistent_workers=True"),
    ),
    (copied_generator, drawing("self.rng = None", late=OWN)),
    (copied_generator, drawing("self.rng = np.random.default_rng(1)", "num_workers=0")),
    (copied_generator, drawing("self.rng = np.random.default_rng(1)", "num_workers=2, worker_init_fn=anew")),
    (copied_generator, drawing("self.rng = np.random.default_rng(1)  # here", "num_workers=2, worker_init_fn=seeds")),
    (copied_generator, drawing("self.rng = np.random.default_rng(1)", "num_workers=2, worker_init_fn=unseen")),
    (
        copied_generator,
        drawing(
            "self.rng = np.random.default_rng(1); self.x = self.rng.normal(size=(9, 4))",
            late="self.rng = np.random.default_rng(i)",
        ),
    ),
    (local_functions, program()),
    (local_functions, program("lambda v: v + 1", "num_workers=2")),
    (local_functions, program("lambda v: v + 1", "num_workers=0, multiprocessing_context=None")),
    (local_functions, program("lambda v: v + 1", 'num_workers=2, multiprocessing_context="fork"')),
    (local_functions, program("lambda v: v + 1", "num_workers=2", 'mp.set_start_method("fork")')),
    (local_functions, program("Compose([double, double])")),
    (handles, program("double", "num_workers=2", extra="self.lock = threading.Lock()")),
]


@pytest.mark.parametrize(("question", "text"), CASES)
def test_worker(question: Question, text: str) -> None:
    assert answered(question, text) == marked(text)
