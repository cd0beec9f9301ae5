"""A quantised model is moved or cast.

What: ``.to(...)``, ``.cuda()``, ``.half()`` or ``.float()`` of a model that was loaded in 8 or 4 bits.
Why it matters: transformers raises: such a model is on its device already, and its weights are no floats.
When it is fine: ``.to`` with a device for 4 bits in newer releases.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.huggingface import loaded_by, model_loads, quantised
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
config = BitsAndBytesConfig(load_in_4bit=True)
model = AutoModelForCausalLM.from_pretrained("m", quantization_config=config)
model.half()  # expect
""",
    """
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
def build():
    model = AutoModelForCausalLM.from_pretrained("m", quantization_config=BitsAndBytesConfig(load_in_8bit=True))
    return model.to(torch.float16)  # expect
""",
)
GOOD = """
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
config = BitsAndBytesConfig(load_in_4bit=True)
model = AutoModelForCausalLM.from_pretrained("m", quantization_config=config)
ids = ids.to(model.device)
plain = AutoModelForCausalLM.from_pretrained("m")
plain.half(), plain.to(torch.float16)
model.lm_head.to(torch.float32)
"""
CASTS = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.half", "torch.float")


def find(project: Project) -> Iterator[Evidence]:
    loads = [c for c in model_loads(project) if quantised(project, c)]
    for call in project.calls("half", "float", "to", "bfloat16", "double") if loads else ():
        if call.receiver is None or not isinstance(call.receiver, ast.Name | ast.Call) or not _casts(call):
            continue
        load = loaded_by(project, call.receiver, call.scope, loads)
        if load is not None:
            text = "the weights are quantised and can't be cast: transformers refuses"
            yield sighting(
                __name__, call, text, proof=[load], fix=Fix("give bnb_4bit_compute_dtype, or dtype, at loading")
            )


def _casts(call: Call) -> bool:
    values = [*call.node.args, *(k.value for k in call.node.keywords)]
    return call.name != "to" or any(written(v) in CASTS for v in values)
