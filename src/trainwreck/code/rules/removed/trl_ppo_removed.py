"""The old PPO of TRL is gone.

What: PPOTrainer, PPOConfig or models with a value head imported from trl.
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
from trl import AutoModelForCausalLMWithValueHead, GRPOConfig  # expect
"""
GOOD = """
from trl import GRPOConfig, GRPOTrainer
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
