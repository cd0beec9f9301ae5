"""Packed samples see one another.

What: ``packing=True`` with ``packing_strategy="wrapped"``.
Why it matters: samples are cut at the border and attend to what belongs to another sample.
When it is fine: for plain pre-training on running text.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from trl import SFTConfig
args = SFTConfig(
    output_dir="o",
    packing=True,
    packing_strategy="wrapped",  # expect
)
"""
GOOD = """
from trl import SFTConfig
args = SFTConfig(output_dir="o", packing=True)
best = SFTConfig(output_dir="o", packing=True, packing_strategy="bfd")
off = SFTConfig(output_dir="o", packing_strategy="wrapped")
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
