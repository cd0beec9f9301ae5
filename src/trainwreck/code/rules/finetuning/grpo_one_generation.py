"""A group of one completion.

What: ``num_generations=1``; rewards that are cut into groups of one, whose mean is taken off.
Why it matters: there is nothing to compare a completion with; TRL raises, a loop written by hand learns nothing.
When it is fine: for other algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.returns import one_answer
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
    yield from further(__name__, project, contradicted(project, __name__), one_answer)
