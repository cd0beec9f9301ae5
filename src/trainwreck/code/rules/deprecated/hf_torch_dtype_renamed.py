"""The old name of the argument for the type of the weights.

What: `torch_dtype=` given to `from_pretrained` or `pipeline` of transformers.
Why it matters: the new name is `dtype` since 4.56; the old one still works and warns.
When it is fine: where the project allows transformers below 4.56.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code import edits
from trainwreck.code.outdated import callee, guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import aim
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.bfloat16)  # expect
"""
GOOD = """
import torch
from diffusers import StableDiffusionPipeline
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.bfloat16)
pipe = StableDiffusionPipeline.from_pretrained("x", torch_dtype=torch.float16)
"""


SINCE = (4, 56)
"""The first release whose from_pretrained reads dtype (transformers pull 39782)."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("from_pretrained", "pipeline", "from_config"):
        item = next((k for k in call.node.keywords if k.arg == "torch_dtype"), None)
        found = callee(project, call) if item is not None else None
        if item is None or found is None or found[0] != "transformers" or guarded(project, call.node, call.scope):
            continue
        where = aim(project, "transformers", call.scope.module.path)
        if where is None:
            continue
        if where.pin is not None and any(low < 0 or where.table.versions[low] < SINCE for low, _ in where.allowed):
            continue
        words = "write dtype for torch_dtype"
        fix = edits.rename_keyword(call.node, "torch_dtype", "dtype", call.scope, words, safe=True)
        text = "`torch_dtype` is called `dtype` since transformers 4.56; the old name works and warns"
        yield sighting(__name__, (item, call.scope), text, fix=fix)
