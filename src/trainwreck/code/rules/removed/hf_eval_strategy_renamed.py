"""The old name of the evaluation strategy.

What: `evaluation_strategy` among the training arguments.
Why it matters: the constructor raises a TypeError in releases after the rename was completed.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import TrainingArguments
def build(folder):
    common = {"evaluation_strategy": "steps"}  # expect
    first = TrainingArguments(output_dir=folder, **common)
    return first, TrainingArguments(
        output_dir=folder,
        evaluation_strategy="epoch",  # expect
    )
"""
GOOD = """
from transformers import TrainingArguments
from mylib import TrainingArguments as Mine
class Arguments(TrainingArguments):
    evaluation_strategy: str = "no"
def build(folder):
    Mine(evaluation_strategy="epoch")
    Arguments(evaluation_strategy="epoch")
    try:
        return TrainingArguments(folder, evaluation_strategy="epoch")
    except TypeError:
        return TrainingArguments(output_dir=folder, eval_strategy="epoch", save_strategy="epoch")
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
