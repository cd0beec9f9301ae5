"""A reference model that nothing refers to.

What: ``sync_ref_model=True`` with ``beta=0``.
Why it matters: with beta 0 there is no reference model, and the policy is held by nothing.
When it is fine: where the KL term is left out on purpose, and the reference model with it.
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
    beta=0.0,  # expect
    sync_ref_model=True,
)
"""
GOOD = """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", beta=0.04, sync_ref_model=True)
free = GRPOConfig(output_dir="o", beta=0.0)
plain = GRPOConfig(output_dir="o")
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
