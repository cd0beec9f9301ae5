"""Values of a reference model that moves are kept.

What: ``precompute_ref_log_probs`` together with ``sync_ref_model``.
Why it matters: the kept log-probabilities are those of an older reference; TRL raises.
When it is fine: with one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from trl import DPOConfig
args = DPOConfig(
    output_dir="o",
    precompute_ref_log_probs=True,
    sync_ref_model=True,  # expect
)
"""
GOOD = """
from trl import DPOConfig
args = DPOConfig(output_dir="o", precompute_ref_log_probs=True)
other = DPOConfig(output_dir="o", sync_ref_model=True)
both = DPOConfig(output_dir="o", precompute_ref_log_probs=False, sync_ref_model=True)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
