"""The old name of the access token.

What: `use_auth_token` in calls of transformers and datasets.
Why it matters: it is ignored or refused: the private repository is not found.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from datasets import load_dataset
from transformers import AutoTokenizer
data = load_dataset("me/private", use_auth_token=True)  # expect
tok = AutoTokenizer.from_pretrained("me/private", use_auth_token="x")  # expect
"""
GOOD = """
from datasets import load_dataset
from transformers import AutoTokenizer
data = load_dataset("me/private", token=True)
tok = AutoTokenizer.from_pretrained("me/private", token="x")
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
