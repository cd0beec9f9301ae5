"""Arguments of the Trainer of Lightning 1.

What: `gpus`, `auto_lr_find`, `resume_from_checkpoint`, `progress_bar_refresh_rate` and others.
Why it matters: the constructor raises a TypeError.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
import pytorch_lightning as pl
trainer = pl.Trainer(max_epochs=3, gpus=1)  # expect
"""
GOOD = """
import pytorch_lightning as pl
trainer = pl.Trainer(max_epochs=3, accelerator="gpu", devices=1)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
