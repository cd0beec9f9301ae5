"""Steps and epochs are both given.

What: ``max_steps`` above zero beside ``num_train_epochs``.
Why it matters: the number of epochs is ignored: the run is longer or shorter than it reads.
When it is fine: where only one of them is given.
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
    num_train_epochs=3,  # expect
    max_steps=1000,
)
"""
GOOD = """
from transformers import TrainingArguments
args = TrainingArguments("o", num_train_epochs=3)
both = TrainingArguments("o", num_train_epochs=3, max_steps=-1)
steps = TrainingArguments("o", max_steps=1000)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
