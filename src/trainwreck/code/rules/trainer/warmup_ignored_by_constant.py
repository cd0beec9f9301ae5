"""A warm-up for a schedule that has none.

What: ``lr_scheduler_type="constant"`` with ``warmup_steps`` or ``warmup_ratio``.
Why it matters: the learning rate is at its full value from the first step.
When it is fine: with "constant_with_warmup".
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
    lr_scheduler_type="constant",
    warmup_steps=100,  # expect
)
""",
    """
from transformers import TrainingArguments
args = TrainingArguments(output_dir="o", lr_scheduler_type="constant", warmup_ratio=0.03)  # expect
""",
)
GOOD = """
from transformers import TrainingArguments
args = TrainingArguments("o", lr_scheduler_type="constant_with_warmup", warmup_steps=100)
flat = TrainingArguments("o", lr_scheduler_type="constant", warmup_steps=0)
line = TrainingArguments("o", warmup_steps=100)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
