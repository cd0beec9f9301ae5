"""The old name of the longest sequence.

What: `max_seq_length` of SFTConfig.
Why it matters: the constructor raises a TypeError; left out, samples are cut at 1024 tokens.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from trl import SFTConfig
args = SFTConfig(output_dir="o", max_seq_length=2048)  # expect
"""
GOOD = """
from trl import SFTConfig
from unsloth import FastLanguageModel
model, tok = FastLanguageModel.from_pretrained("m", max_seq_length=2048)
args = SFTConfig(output_dir="o", max_length=2048)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
