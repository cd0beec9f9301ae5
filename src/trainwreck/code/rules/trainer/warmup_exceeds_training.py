"""A warm-up that is longer than the run.

What: ``warmup_steps`` above ``max_steps``.
Why it matters: the learning rate never reaches the value that was asked for.
When it is fine: where the run is cut short on purpose to look at the warm-up.
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
    max_steps=200,
    warmup_steps=1000,  # expect
)
"""
GOOD = """
from transformers import TrainingArguments
args = TrainingArguments("o", max_steps=2000, warmup_steps=100)
epochs = TrainingArguments("o", num_train_epochs=3, warmup_steps=1000)
part = TrainingArguments("o", max_steps=200, warmup_steps=0.1)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
