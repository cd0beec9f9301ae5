"""A schedule that follows the evaluation, without an evaluation.

What: ``lr_scheduler_type="reduce_lr_on_plateau"`` with ``eval_strategy`` left at "no".
Why it matters: the arguments class raises a ValueError.
When it is fine: with evaluation by steps or epochs.
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
    lr_scheduler_type="reduce_lr_on_plateau",  # expect
)
"""
GOOD = """
from transformers import TrainingArguments
args = TrainingArguments("o", lr_scheduler_type="reduce_lr_on_plateau", eval_strategy="epoch")
old = TrainingArguments("o", lr_scheduler_type="reduce_lr_on_plateau", evaluation_strategy="steps")
own = TrainingArguments("o", lr_scheduler_type="reduce_lr_on_plateau", **options())
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
