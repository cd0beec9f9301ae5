"""What a method of a data set gives back is thrown away.

What: ``data.map(...)``, ``filter``, ``shuffle``, ``remove_columns``, ... as a statement of its own.
Why it matters: data sets of the datasets library are never changed in place: the call has no effect on training.
When it is fine: for ``set_format`` and ``set_transform``, which do change it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.huggingface import SHAPING, dataset_root
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("datasets",)
BAD = (
    """
from datasets import load_dataset
data = load_dataset("imdb", split="train")
data.shuffle(seed=1)  # expect
data.map(tokenize, batched=True)  # expect
trainer.train()
""",
    """
from datasets import Dataset
def build(rows):
    ds = Dataset.from_list(rows)
    ds.remove_columns(["id"])  # expect
    ds["train"].filter(lambda r: r["x"])  # expect
    return ds
""",
)
GOOD = """
from datasets import load_dataset
data = load_dataset("imdb", split="train")
data = data.shuffle(seed=1).map(tokenize)
data.set_format("torch")
rows = [3, 1, 2]
rows.sort()
executor.map(work, rows)
import random
random.shuffle(rows)
"""


def find(project: Project) -> Iterator[Evidence]:
    calls = project.calls(*(SHAPING - {"take", "skip", "repeat"}))
    for call in sorted(calls, key=lambda c: (c.scope.module.path, c.line)):
        if not isinstance(project.parent(call.node, call.scope), ast.Expr) or call.receiver is None:
            continue
        root = dataset_root(project, call.receiver, call.scope)
        if root is not None:
            name = written(call.receiver)
            text = f"{name}.{call.name}(...) gives a new data set back and changes nothing"
            yield sighting(__name__, call, text, proof=[root], fix=Fix(f"{name} = {name}.{call.name}(...)"))
