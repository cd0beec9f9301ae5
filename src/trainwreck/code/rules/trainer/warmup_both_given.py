"""Two lengths for the warm-up.

What: ``warmup_steps`` and ``warmup_ratio`` are both above zero.
Why it matters: the steps win and the ratio is ignored without a word.
When it is fine: where one of them is zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import TrainingArguments
args = TrainingArguments(
    output_dir="o",
    warmup_steps=100,
    warmup_ratio=0.1,  # expect
)
"""
GOOD = """
from transformers import TrainingArguments
args = TrainingArguments("o", warmup_steps=0, warmup_ratio=0.1)
few = TrainingArguments("o", warmup_steps=100)
read = TrainingArguments("o", warmup_steps=steps, warmup_ratio=0.1)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
