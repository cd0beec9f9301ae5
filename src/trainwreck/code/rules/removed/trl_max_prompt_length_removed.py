"""Lengths of prompts are arguments no more.

What: `max_prompt_length` and other removed fields of the configs of TRL.
Why it matters: the constructor raises a TypeError.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", max_prompt_length=512, max_completion_length=1024)  # expect
"""
GOOD = """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", max_completion_length=1024)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
