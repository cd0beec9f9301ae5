"""``__getitem__`` gives back None for some samples.

What: a sample that can't be used (too long, unreadable) is answered with None, and nothing filters it out.
Why it matters: collating the batch fails in a worker, far from the sample.
When it is fine: with a collate function that drops None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.no_samples import handed_out
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import dataset_classes
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"NoneType",)
ERROR = "TypeError: default_collate: batch must contain tensors, numpy arrays; found <class 'NoneType'>"
BAD = """
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __getitem__(self, i):
        try:
            return self.load(i)
        except OSError:
            return None  # expect
def main():
    for x in DataLoader(Data(), batch_size=4):  # fails
        pass
"""
GOOD = """
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __getitem__(self, i):
        return self.load(i)
def main():
    for x in DataLoader(Data(), batch_size=4):
        pass
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, handed_out)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for owner in dataset_classes(project):
        method = owner.method("__getitem__")
        if method is None:
            continue
        for node in project.within(method, ast.Return):
            if isinstance(node, ast.Return) and _none(node.value):
                yield guess(__name__, (node, method), "the data set gives back None here")
                return
        if _falls_through(method):
            yield guess(__name__, (_last(method), method), "on one path the data set returns nothing, which is None")
            return
    for function in project.functions:
        if any(function is project.resolve(c.node.func, c.scope) for c in surface.calls(project)):
            for node in project.within(function, ast.Return):
                if isinstance(node, ast.Return) and _none(node.value):
                    yield guess(__name__, (node, function), "None is given back here")
                    return


def _none(value: ast.expr | None) -> bool:
    return (
        value is None
        or (isinstance(value, ast.Constant) and value.value is None)
        or (isinstance(value, ast.IfExp) and (_none(value.body) or _none(value.orelse)))
    )


def _falls_through(method: Scope) -> bool:
    last = _last(method)
    return bool(method.returns) and isinstance(last, ast.If) and not last.orelse


def _last(method: Scope) -> ast.stmt:
    body: list[ast.stmt] = getattr(method.node, "body", [])
    return body[-1]
