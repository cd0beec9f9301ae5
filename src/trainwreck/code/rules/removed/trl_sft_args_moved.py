"""Arguments of SFTTrainer live in SFTConfig now.

What: `dataset_text_field`, `packing`, `max_seq_length` and others given to the trainer.
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
from trl import SFTTrainer
def build(model, args, data):
    return SFTTrainer(
        model=model,
        args=args,
        train_dataset=data,
        dataset_text_field="text",  # expect
        max_seq_length=512,  # expect
    )
"""
GOOD = """
from trl import SFTConfig, SFTTrainer
def build(model, data):
    return SFTTrainer(model=model, args=SFTConfig(dataset_text_field="text", max_length=512), train_dataset=data)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
