"""A stream is used like a table.

What: ``len``, an index, ``select``, ``sort`` or ``train_test_split`` on a data set that is loaded with
``streaming=True``.
Why it matters: a stream has neither length nor index: a TypeError or an AttributeError.
When it is fine: with ``take`` and ``skip``, or without streaming.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import option
from trainwreck.code.huggingface import dataset_root, streamed
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from datasets import load_dataset
data = load_dataset("c4", split="train", streaming=True)
print(len(data))  # expect
few = data.select(range(100))  # expect
parts = data.train_test_split(0.1)  # expect
""",
    """
from datasets import load_dataset
def main():
    data = load_dataset("c4", split="train", streaming=True).map(clean)
    print(data[0])  # expect
""",
)
GOOD = """
from datasets import load_dataset
data = load_dataset("c4", split="train", streaming=True)
few = list(data.take(100))
both = load_dataset("c4", streaming=True)
train = both["train"]
whole = load_dataset("c4", split="train")
print(len(whole), whole[0], whole.select(range(3)), few[0])
"""
ABSENT = ("select", "sort", "train_test_split", "unique", "class_encode_column")
"""Methods that a stream does not have (datasets 5.2)."""


def find(project: Project) -> Iterator[Evidence]:
    if not any(True for _ in project.calls("load_dataset")):
        return
    for call in sorted(project.calls(*ABSENT, "len"), key=lambda c: (c.scope.module.path, c.line)):
        node = call.receiver if call.name != "len" else (call.node.args[0] if call.node.args else None)
        root = dataset_root(project, node, call.scope) if node is not None else None
        if root is not None and streamed(project, root) and _split(project, root):
            text = f"the data are a stream, which has no {'length' if call.name == 'len' else call.name}"
            yield sighting(__name__, call, text, proof=[root], fix=Fix("take and skip, or streaming=False"))
    for scope in project.scopes:
        for sub in project.within(scope, ast.Subscript):
            if not isinstance(sub, ast.Subscript) or not isinstance(sub.slice, ast.Constant | ast.Slice):
                continue
            if isinstance(sub.slice, ast.Constant) and not isinstance(sub.slice.value, int):
                continue
            root = dataset_root(project, sub.value, scope)
            if root is not None and streamed(project, root) and _split(project, root):
                text = "the data are a stream, which has no index"
                yield sighting(__name__, (sub, scope), text, proof=[root], fix=Fix("next(iter(data)), or take"))


def _split(project: Project, root: Call) -> bool:
    return option(project, root, "split") is not None
