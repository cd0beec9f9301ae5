"""Samples of different length reach the default collate function.

What: ``DataLoader`` without ``collate_fn`` over a data set whose items differ in length (tokens, boxes, audio).
Why it matters: ``torch.stack`` refuses tensors of unequal size as soon as two lengths meet in a batch.
When it is fine: for items of one shape, or with padding in the data set.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import loaders
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"stack expects each tensor to be equal size",
    r"each element in list of batch should be of equal size",
    r"Trying to resize storage that is not resizable",
    r"expected sequence of length \d+ at dim",
    r"Unable to create tensor, you should probably activate truncation and/or padding",
)
ERROR = "RuntimeError: stack expects each tensor to be equal size, but got [7] at entry 0 and [9] at entry 1"
BAD = """
from torch.utils.data import DataLoader
def main(train, val, model):
    train_loader = DataLoader(train, batch_size=8, shuffle=True)  # expect
    for ids, label in train_loader:  # fails
        model(ids)
"""
GOOD = """
from torch.utils.data import DataLoader
def main(train, model, pad):
    train_loader = DataLoader(train, batch_size=8, shuffle=True, collate_fn=pad)
    for ids, label in train_loader:
        model(ids)
"""


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in loaders(project, surface):
        if call.argument("collate_fn") is None and not call.open_ended:
            yield guess(__name__, call, "the loader stacks the samples as they are: no collate_fn that pads")
            return
    for spot in surface.spots:
        yield guess(__name__, (spot.statement, spot.scope), "samples are stacked here as they are")
        return
