"""Old arguments about devices, precision and saving.

What: `no_cuda`, `use_mps_device`, `per_gpu_*`, `fp16_backend`, `save_safetensors` and others among the
training arguments.
Why it matters: the constructor raises a TypeError in transformers 5.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import TrainingArguments
args = TrainingArguments(
    output_dir="o",
    no_cuda=True,  # expect
    per_gpu_train_batch_size=8,  # expect
    save_safetensors=False,  # expect
)
"""
GOOD = """
from transformers import TrainingArguments
args = TrainingArguments(output_dir="o", use_cpu=True, per_device_train_batch_size=8)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
