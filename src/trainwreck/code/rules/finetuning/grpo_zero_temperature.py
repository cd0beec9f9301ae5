"""A group that is sampled without chance.

What: ``temperature`` of zero or close to it in GRPO or RLOO.
Why it matters: all completions of a group are equal, so are their rewards, and the advantage is zero.
When it is fine: for evaluation.
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
    temperature=0.0,  # expect
)
"""
GOOD = """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", temperature=0.7)
plain = GRPOConfig(output_dir="o")
read = GRPOConfig(output_dir="o", temperature=t)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
