"""Two lengths for the generation batch.

What: ``generation_batch_size`` and ``steps_per_generation`` are both given.
Why it matters: the arguments class raises a ValueError.
When it is fine: with one of them.
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
    generation_batch_size=64,
    steps_per_generation=4,  # expect
)
"""
GOOD = """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", generation_batch_size=64)
other = GRPOConfig(output_dir="o", steps_per_generation=4)
none = GRPOConfig(output_dir="o", generation_batch_size=None, steps_per_generation=4)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
