"""Weights in 4 and in 8 bits.

What: ``load_in_4bit`` and ``load_in_8bit`` are both on.
Why it matters: the configuration raises a ValueError.
When it is fine: with one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import BitsAndBytesConfig
config = BitsAndBytesConfig(
    load_in_4bit=True,
    load_in_8bit=True,  # expect
)
"""
GOOD = """
from transformers import BitsAndBytesConfig
four = BitsAndBytesConfig(load_in_4bit=True)
eight = BitsAndBytesConfig(load_in_8bit=True, load_in_4bit=False)
read = BitsAndBytesConfig(load_in_4bit=a, load_in_8bit=b)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
