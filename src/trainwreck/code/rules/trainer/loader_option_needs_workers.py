"""An option of the loader that only workers have.

What: ``dataloader_prefetch_factor`` or ``dataloader_persistent_workers`` with no workers.
Why it matters: a ValueError before the first step.
When it is fine: with ``dataloader_num_workers`` above zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import TrainingArguments
args = TrainingArguments(
    output_dir="o",
    dataloader_prefetch_factor=2,  # expect
)
""",
    """
from transformers import TrainingArguments
args = TrainingArguments(output_dir="o", dataloader_num_workers=0, dataloader_persistent_workers=True)  # expect
""",
)
GOOD = """
from transformers import TrainingArguments
args = TrainingArguments("o", dataloader_num_workers=4, dataloader_prefetch_factor=2)
more = TrainingArguments("o", dataloader_num_workers=n, dataloader_persistent_workers=True)
plain = TrainingArguments("o", dataloader_persistent_workers=False)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
