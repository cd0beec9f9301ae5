"""Gradients are clipped past the accelerator.

What: ``torch.nn.utils.clip_grad_norm_`` beside an ``Accelerator`` in fp16.
Why it matters: the gradients still carry the loss scale, so that the limit cuts all of them to almost nothing; sharded
models give the norm of one shard.
When it is fine: with bf16 or fp32 on plain data parallelism, and after ``unscale_gradients``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import is_torch, only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.rules.accelerate.accelerate_plain_backward import accelerators
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import torch
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator(mixed_precision="fp16")
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect
        opt.step()
""",
)
GOOD = (
    """
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator(mixed_precision="fp16")
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
""",
    """
import torch
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator(mixed_precision="bf16")
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
""",
)


def find(project: Project) -> Iterator[Evidence]:
    if any(True for _ in project.calls("unscale_gradients", "unscale_")):
        return
    half = [c for c in accelerators(project) if only(project, option(project, c, "mixed_precision")) == "fp16"]
    for call in project.calls("clip_grad_norm_", "clip_grad_value_") if half else ():
        if is_torch(project, call):
            text = "the gradients still carry the loss scale here: the limit cuts them to almost nothing"
            fix = Fix("accelerator.clip_grad_norm_(model.parameters(), ...)")
            yield sighting(__name__, call, text, proof=half[:1], fix=fix)
