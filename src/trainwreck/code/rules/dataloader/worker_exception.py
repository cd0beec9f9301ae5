"""The data set itself raises, in a worker process.

What: the exception that the main process shows as "Caught … in DataLoader worker process" comes from a line of the
data set or of the collate function.
Why it matters: the outer frames name the loop and the loader, which are not at fault.
When it is fine: never; the innermost line of the worker's own traceback is the place.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import dataset_classes
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"DataLoader worker", r"worker process")
ERROR = "KeyError: Caught KeyError in DataLoader worker process 0."
BAD = """
from torch.utils.data import Dataset
class Data(Dataset):
    def __getitem__(self, i):
        return self.index[self.names[i]]  # expect # fails # place
"""
GOOD = """
def plain(x):
    return x
"""


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    owners = dataset_classes(project)
    for spot in surface.spots if surface is not None else ():
        if spot.scope.owner in owners or spot.scope.name.startswith(("collate", "__getitem__", "__iter__")):
            yield guess(__name__, (spot.statement, spot.scope), "the worker failed here")
            return
    for owner in owners:
        method = owner.method("__getitem__") or owner.method("__iter__")
        if method is not None:
            yield guess(__name__, (method.node, method), "the samples are made here")
            return
