"""All workers draw the same random numbers.

What: ``worker_init_fn`` seeds with something that is the same in every worker.
Why it matters: augmentation and noise repeat across workers, and across epochs.
When it is fine: with ``worker_id``, ``torch.initial_seed()`` or ``get_worker_info().seed`` in the seed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.core.evidence import Evidence

BAD = """
import numpy as np
from torch.utils.data import DataLoader
def seed_worker(worker_id):
    np.random.seed(1234)  # expect
loader = DataLoader([1], num_workers=2, worker_init_fn=seed_worker)
"""
GOOD = """
import numpy as np, torch
from torch.utils.data import DataLoader
def seed_worker(worker_id):
    np.random.seed(1234 + worker_id)
def other(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
loader = DataLoader([1], num_workers=2, worker_init_fn=seed_worker)
second = DataLoader([1], num_workers=2, worker_init_fn=other)
"""
DIFFERS = re.compile(r"initial_seed|\.seed\b(?!\()|\.id\b|getpid|time\(|urandom|SeedSequence|rank")


def find(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for loader in project.calls(*LOADERS):
        value = loader.argument("worker_init_fn")
        function = project.resolve(value, loader.scope) if value is not None else None
        if function is None or not function.positional or id(function) in told:
            continue
        told.add(id(function))
        seeds = [
            c for c in project.calls("seed", "manual_seed", "seed_everything") if c.scope is function and c.node.args
        ]
        if seeds and not any(_differs(project, c, function) for c in seeds):
            yield sighting(__name__, seeds[0], "the seed is the same in every worker", proof=[loader])


def _differs(project: Project, call: Call, function: Scope) -> bool:
    for step in back(project, call.node.args[0], call.scope):
        text = written(step.node)
        if DIFFERS.search(text) or (isinstance(step.node, ast.Name) and step.node.id == function.positional[0]):
            return True
    return False
