"""Classes of models, processors and data sets that are gone.

What: `AutoModelWithLMHead`, `AutoModelForVision2Seq`, vision feature extractors, `TextDataset` imported from
transformers.
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
from transformers import AutoModelForVision2Seq  # expect
from transformers import (
    AutoTokenizer,
    TextDataset,  # expect
)
"""
GOOD = """
from transformers import AutoModelForImageTextToText, AutoTokenizer, AutoFeatureExtractor, WhisperFeatureExtractor
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
