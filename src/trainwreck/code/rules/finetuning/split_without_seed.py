"""The held-out part is another one in every run.

What: ``train_test_split`` of a data set without ``seed``, and no seed anywhere in the program.
Why it matters: runs can't be compared, and a run that goes on after a restart evaluates on what it has trained on.
When it is fine: with ``seed``, with ``shuffle=False``, or after ``set_seed``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import complete, only, option
from trainwreck.code.huggingface import dataset_root, text_has, trains
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from datasets import load_dataset
data = load_dataset("imdb", split="train").train_test_split(test_size=0.1)  # expect
trainer.train()
""",
)
GOOD = (
    """
from datasets import load_dataset
data = load_dataset("imdb", split="train")
one = data.train_test_split(test_size=0.1, seed=42), data.train_test_split(0.1, shuffle=False)
trainer.train()
""",
    """
from datasets import load_dataset
from transformers import set_seed
set_seed(1)
data = load_dataset("imdb", split="train").train_test_split(test_size=0.1)
trainer.train()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    if text_has(project, "set_seed(", "random.seed(", "manual_seed(", "seed_everything(") or not trains(project):
        return
    for call in project.calls("train_test_split"):
        if call.receiver is None or not complete(project, call) or option(project, call, "seed") is not None:
            continue
        kept = (
            only(project, option(project, call, "shuffle")) is False or option(project, call, "generator") is not None
        )
        root = dataset_root(project, call.receiver, call.scope)
        if not kept and root is not None:
            text = "the split is drawn anew in every run: no seed is given"
            yield sighting(__name__, call, text, proof=[root], fix=Fix("seed=42"))
