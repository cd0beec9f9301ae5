"""Some random generators are seeded, and one that is used is not.

What: the program seeds NumPy or ``random`` but not torch, though it trains with torch (or seeds torch and draws
from NumPy).
Why it matters: runs still differ, and look as if they were controlled.
When it is fine: where the other generator only draws what does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import (
    source,
    trains,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.seeded_late import seeded_late
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import random
import torch
random.seed(0)  # expect
def train(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
""",
    """
import numpy as np
import torch
torch.manual_seed(0)  # expect
def train(model, x):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        rows = np.random.permutation(len(x))
        model(x[rows]).sum().backward()
        opt.step()
        opt.zero_grad()
""",
)
GOOD = """
import random
import numpy as np
import torch
random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
def train(model, x):
    rng = np.random.default_rng(0)
    for _ in range(3):
        model(x[rng.permutation(3)]).sum().backward()
"""


SEEDERS = ("seed_everything", "set_seed", "seed_all", "fix_seed", "isolate_rng")
"""Helpers of libraries that seed all generators; a function of the program of such a name is read like any other."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _missing(project), seeded_late)


def _missing(project: Project) -> Iterator[Evidence]:
    text = source(project)
    own = {f.name for f in project.functions}
    if not trains(project) or any(w in text and w not in own for w in SEEDERS):
        return
    torch_seeds = [
        c
        for c in project.calls("manual_seed", "seed")
        if project.called(c) in ("torch.manual_seed", "torch.seed", "torch.random.manual_seed")
    ]
    numpy_seeds = [c for c in project.calls("seed") if project.called(c) == "numpy.random.seed"]
    plain_seeds = [c for c in project.calls("seed") if project.called(c) == "random.seed"]
    numpy_draws = [
        Call(n, s)
        for w in project.walked.values()
        for n, s in w.calls
        if project.called(Call(n, s)).startswith("numpy.random.")
        and last_name(n.func)
        not in ("seed", "default_rng", "RandomState", "Generator", "get_state", "set_state", "SeedSequence")
    ]
    if (plain_seeds or numpy_seeds) and not torch_seeds:
        yield sighting(
            __name__, (plain_seeds or numpy_seeds)[0], "torch draws weights and batches here, and is not seeded"
        )
    elif torch_seeds and numpy_draws and not numpy_seeds:
        yield sighting(__name__, torch_seeds[0], "NumPy draws here too, and is not seeded", proof=numpy_draws[:1])
