"""Packed samples see one another.

What: ``packing=True`` with ``packing_strategy="wrapped"``; or a mask that lets a token see the documents before its own
in the row, or the same document's tokens worked out and left out of the mask.
Why it matters: samples are cut at the border and attend to what belongs to another sample.
When it is fine: for plain pre-training on running text.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.packing import documents_unread, positions_unheeded, starts_again, unheeded
from trainwreck.code.rehearsal.questions.visibility import documents_mixed
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
    mixed = answers(__name__, project, documents_mixed)
    yield from further(__name__, project, mixed, unheeded, positions_unheeded, documents_unread, starts_again)
