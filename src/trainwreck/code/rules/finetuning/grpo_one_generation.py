"""A group of one completion.

What: ``num_generations=1``.
Why it matters: there is nothing to compare a completion with; TRL raises.
When it is fine: for other algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from trl import GRPOConfig
args = GRPOConfig(
    output_dir="o",
    num_generations=1,  # expect
)
"""
GOOD = """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", num_generations=4)
plain = GRPOConfig(output_dir="o")
read = GRPOConfig(output_dir="o", num_generations=cfg.n)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
