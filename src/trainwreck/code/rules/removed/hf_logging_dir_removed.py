"""The folder of the logs is no argument any more.

What: `logging_dir` among the training arguments.
Why it matters: the constructor raises a TypeError in releases that lack it.
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
args = SFTConfig(output_dir="o", logging_dir="runs")  # expect
"""
GOOD = """
from trl import SFTConfig
from accelerate.utils import ProjectConfiguration
args = SFTConfig(output_dir="o")
where = ProjectConfiguration(project_dir="o", logging_dir="runs")
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
