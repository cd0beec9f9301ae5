"""Overwriting the output folder is no argument any more.

What: `overwrite_output_dir` among the training arguments.
Why it matters: the constructor raises a TypeError in transformers 5.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
import transformers
args = transformers.TrainingArguments("o", overwrite_output_dir=True)  # expect
"""
GOOD = """
import transformers
args = transformers.TrainingArguments("o", save_total_limit=2)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
