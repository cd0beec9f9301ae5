"""The warm-up ratio is an argument no more.

What: `warmup_ratio` among the training arguments.
Why it matters: the constructor raises a TypeError in releases that lack it.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import Seq2SeqTrainingArguments
args = Seq2SeqTrainingArguments(output_dir="o", warmup_ratio=0.1)  # expect
"""
GOOD = """
from transformers import Seq2SeqTrainingArguments
args = Seq2SeqTrainingArguments(output_dir="o", warmup_steps=0.1)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
