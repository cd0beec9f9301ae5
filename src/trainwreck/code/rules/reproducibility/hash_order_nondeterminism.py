"""Class numbers come from the order of a set.

What: labels are numbered by enumerating a ``set`` of strings, unsorted.
Why it matters: the order of strings in a set changes with every process: a saved model has other class numbers next
time.
When it is fine: with ``sorted(set(...))``, or where the mapping is saved with the model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import (
    text_of,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
def build(labels):
    return {name: i for i, name in enumerate(set(labels))}  # expect
""",
    """
def build(rows):
    classes = list(set(row["label"] for row in rows))  # expect
    index = {c: i for i, c in enumerate(classes)}
    return index
""",
)
GOOD = """
def build(labels, ids):
    seen = set(labels)
    n = len(list(set(labels)))
    for i, name in enumerate(set(ids)):
        print(i, name)
    classes = list(set(labels))
    classes.sort()
    return {name: i for i, name in enumerate(sorted(set(labels)))}, {c: i for i, c in enumerate(classes)}
"""


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in project.within(scope, ast.DictComp):
                assert isinstance(node, ast.DictComp)
                loop = node.generators[0]
                if (
                    not isinstance(loop.iter, ast.Call)
                    or last_name(loop.iter.func) != "enumerate"
                    or not loop.iter.args
                ):
                    continue
                if not isinstance(loop.target, ast.Tuple) or not _number(node.value, loop.target.elts[0]):
                    continue
                for value, where in ends(project, loop.iter.args[0], scope, reshapes=False):
                    inner = (
                        value.args[0]
                        if isinstance(value, ast.Call) and last_name(value.func) in ("list", "tuple") and value.args
                        else value
                    )
                    unordered = isinstance(inner, ast.SetComp) or (
                        isinstance(inner, ast.Call)
                        and isinstance(inner.func, ast.Name)
                        and inner.func.id == "set"
                        and inner.args
                    )
                    if unordered and ".sort(" not in text_of(project, where):
                        yield sighting(
                            __name__,
                            (value if value is not loop.iter.args[0] else node, where),
                            "numbers are given in the order of a set, which changes from run to run",
                        )


def _number(value: ast.expr, counter: ast.expr) -> bool:
    """True for the counter itself, and for it and a number more: ``i + 2``."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        pair = (value.left, value.right)
        return any(isinstance(p, ast.Constant) for p in pair) and any(written(p) == written(counter) for p in pair)
    return written(value) == written(counter)
