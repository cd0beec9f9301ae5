"""A preference loss without a preference.

What: ``beta=0`` in DPO, KTO, CPO or ORPO.
Why it matters: the margin is multiplied by nothing: the loss is constant.
When it is fine: with a positive beta.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.preferences import without_weight
from trainwreck.core.evidence import Evidence

BAD = """
from trl import DPOConfig
args = DPOConfig(
    output_dir="o",
    beta=0,  # expect
)
"""
GOOD = """
from trl import DPOConfig
args = DPOConfig(output_dir="o", beta=0.1)
plain = DPOConfig(output_dir="o")
read = DPOConfig(output_dir="o", beta=cfg.beta)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), without_weight)


def _written(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
