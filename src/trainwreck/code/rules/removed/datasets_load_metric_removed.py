"""Metrics left the datasets library.

What: `load_metric` and its kind imported from datasets, or called as `datasets.load_metric`.
Why it matters: the import raises an ImportError.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
import datasets
from datasets import load_dataset, load_metric  # expect
def score():
    return datasets.load_metric("accuracy")  # expect
"""
GOOD = """
import evaluate
from datasets import load_dataset
metric = evaluate.load("accuracy")
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
