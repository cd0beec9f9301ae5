"""Arguments of the preference trainers live in their configs now.

What: `beta`, `max_length`, `loss_type` and others given to DPOTrainer.
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
from trl import DPOTrainer
def build(model, args, data, tok):
    return DPOTrainer(model, None, args=args, beta=0.1, train_dataset=data, processing_class=tok)  # expect
"""
GOOD = """
from trl import DPOConfig, DPOTrainer
def build(model, data, tok):
    return DPOTrainer(model, None, args=DPOConfig(beta=0.1), train_dataset=data, processing_class=tok)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
