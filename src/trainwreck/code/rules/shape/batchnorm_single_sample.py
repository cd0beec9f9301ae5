"""A batch of one sample reaches BatchNorm in training mode.

What: the loader does not drop its last batch, which can hold a single sample (or the batch size is 1).
Why it matters: one value per channel has no variance; training stops at the end of the first epoch.
When it is fine: with ``drop_last=True``, in eval mode, with GroupNorm or LayerNorm.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.short_batches import single
from trainwreck.code.rule import guess
from trainwreck.code.seek import loaders
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

SURFACES = (r"Expected more than 1 value per channel when training", r"Expected more than 1 spatial element")
ERROR = "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 64])"
BAD = """
from torch.utils.data import DataLoader
def main(model, train, val):
    val_loader = DataLoader(val, batch_size=32)
    train_loader = DataLoader(train, batch_size=32, shuffle=True)  # expect
    for x, y in train_loader:
        model(x)  # fails
"""
GOOD = """
from torch.utils.data import DataLoader
def main(model, train):
    train_loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
    for x, y in train_loader:
        model(x)  # fails
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, single)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in loaders(project, surface):
        if not is_true(call.argument("drop_last")) and not call.open_ended:
            yield guess(__name__, call, "the loader keeps an incomplete last batch, which can be a single sample")
            return
