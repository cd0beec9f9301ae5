"""A sample without content goes through the pipeline.

What: an empty text, a sequence of length zero, a crop outside the image: made where the data are built or filtered.
Why it matters: packing, pooling or a maximum over nothing fails; a mean over nothing is NaN.
When it is fine: where such samples are dropped before batching.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.flow import Step, back
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import dataset_classes, inputs
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"Length of all samples has to be greater than 0",
    r"Expected reduction dim|to have non-zero size|non-empty|zero-size|zero-dimensional|of 0 elements|numel\(\) == 0",
    r"max\(\) arg is an empty sequence|min\(\) arg is an empty sequence|empty (list|tensor|sequence|range)",
    r"cannot reshape array of size 0|list index out of range|Cannot (choose|take).*empty",
)
ERROR = "RuntimeError: Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
BAD = """
import torch
from torch.nn.utils.rnn import pack_padded_sequence
def rows(texts):
    out = []
    for t in texts:
        text = t.strip() if len(t) < 99 else ""  # expect
        out.append(text)
    return out
def main(texts, rnn):
    for text in rows(texts):
        ids = torch.tensor([ord(c) for c in text])
        rnn(pack_padded_sequence(ids, [len(ids)]))  # fails
"""
GOOD = """
def main(texts, rnn):
    for text in texts:
        rnn(text)  # fails
"""


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for node, scope in inputs(project, surface):
        for step in back(project, node, scope):
            if _empty(project, step):
                yield guess(__name__, step, "an empty sample is made here", step.chain()[1:4])
                return


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for owner in dataset_classes(project):
        method = owner.method("__getitem__")
        for value in method.returns if method is not None else ():
            if value is not None and method is not None:
                yield guess(__name__, (value, method), "samples of any length are handed out here")
                return


def _empty(project: Project, step: Step) -> bool:
    node = step.node
    above = project.parent(node, step.scope)
    if isinstance(node, ast.Constant) and node.value == "":
        return not (
            isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and last_name(above.func) == "get")
        )
    if isinstance(node, ast.List) and not node.elts:
        return isinstance(above, ast.IfExp | ast.Return | ast.Dict | ast.Tuple) or (
            isinstance(above, ast.Call) and last_name(above.func) in ("append", "tensor")
        )
    return (
        isinstance(node, ast.Call)
        and last_name(node.func) in ("zeros", "empty")
        and any(isinstance(a, ast.Constant) and a.value == 0 for a in node.args)
    )
