"""AdamW of transformers is gone.

What: `from transformers import AdamW`.
Why it matters: the import raises an ImportError.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import AdamW, get_linear_schedule_with_warmup  # expect
"""
GOOD = """
try:
    from transformers import AdamW
except ImportError:
    from torch.optim import AdamW
from transformers import get_linear_schedule_with_warmup
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
