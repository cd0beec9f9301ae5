"""Trainers that left the top level of TRL.

What: ORPO, CPO, online DPO, GKD, BCO, Nash-MD, XPO, PRM and the judges imported from trl.
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
from trl import ORPOConfig, DPOTrainer  # expect
"""
GOOD = """
from trl import DPOConfig, DPOTrainer
from trl.experimental.orpo import ORPOConfig
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
