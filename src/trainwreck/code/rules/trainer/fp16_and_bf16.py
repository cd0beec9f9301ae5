"""Both half-precision formats at once.

What: ``fp16=True`` and ``bf16=True`` in the same training arguments.
Why it matters: the arguments class raises a ValueError.
When it is fine: where one of them depends on the hardware.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import TrainingArguments
args = TrainingArguments(
    output_dir="o",
    fp16=True,  # expect
    bf16=True,
)
""",
    """
from trl import SFTConfig
HALF = True
options = {"fp16": HALF, "bf16": True}
args = SFTConfig(output_dir="o", **options)  # expect
""",
)
GOOD = """
import torch
from transformers import TrainingArguments
ok = torch.cuda.is_bf16_supported()
args = TrainingArguments("o", fp16=not ok, bf16=ok)
one = TrainingArguments("o", fp16=True)
two = TrainingArguments("o", fp16=False, bf16=True)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from contradicted(project, __name__)
