"""A data set that needs a loading script.

What: `load_dataset("something.py")` or `trust_remote_code=` given to `load_dataset`.
Why it matters: datasets 4 runs no scripts: a RuntimeError, or the argument is not known.
When it is fine: where the project pins datasets below 4.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.outdated import callee, grade, guarded, told
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import aim
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
from datasets import load_dataset
one = load_dataset("my_corpus.py", split="train")  # expect
two = load_dataset("squad_old", trust_remote_code=True)  # expect
"""
GOOD = """
from datasets import load_dataset
from transformers import AutoModel
one = load_dataset("csv", data_files="x.csv")
net = AutoModel.from_pretrained("x", trust_remote_code=True)
"""


FIX = Fix("convert the data to Parquet or JSON and load that")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("load_dataset", "load_dataset_builder"):
        name = call.argument("path", 0)
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or not name.value.endswith(".py"):
            continue
        where = aim(project, "datasets", call.scope.module.path)
        found = callee(project, call)
        if found is None or found[0] != "datasets" or where is None or guarded(project, call.node, call.scope):
            continue
        new = [low >= 0 and where.table.versions[low] >= (4,) for low, _ in where.allowed]
        if new[-1]:
            severity = grade(where.pin is not None and all(new))
            text = f"{name.value} is a loading script; datasets 4 runs none"
            yield sighting(__name__, call, text, fix=FIX, severity=severity)
    yield from told(project, __name__)
