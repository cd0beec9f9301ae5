"""An adapter is merged into quantised weights.

What: ``merge_and_unload`` of an adapter whose base was loaded in 4 or 8 bits.
Why it matters: the sum is rounded to the few bits of the base: the merged model answers differently.
When it is fine: with the base loaded again in bf16 or fp32 before the merge.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import made
from trainwreck.code.huggingface import loaded_by, model_loads, quantised
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import PeftModel
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
def main(path):
    four = BitsAndBytesConfig(load_in_4bit=True)
    base = AutoModelForCausalLM.from_pretrained("m", quantization_config=four)
    model = PeftModel.from_pretrained(base, path)
    merged = model.merge_and_unload()  # expect
    merged.save_pretrained("out")
""",
    """
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
base = AutoModelForCausalLM.from_pretrained("m", quantization_config=BitsAndBytesConfig(load_in_8bit=True))
tuned = get_peft_model(base, LoraConfig(r=8))
tuned = tuned.merge_and_unload()  # expect
""",
)
GOOD = """
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
def main(path):
    base = AutoModelForCausalLM.from_pretrained("m", dtype=torch.bfloat16)
    return PeftModel.from_pretrained(base, path).merge_and_unload()
def either(path, small):
    config = BitsAndBytesConfig(load_in_4bit=small)
    base = AutoModelForCausalLM.from_pretrained("m", quantization_config=config)
    return PeftModel.from_pretrained(base, path).merge_and_unload()
"""


def find(project: Project) -> Iterator[Evidence]:
    loads = model_loads(project)
    for call in project.calls("merge_and_unload"):
        base = _base(project, call.receiver, call.scope) if call.receiver is not None else None
        load = loaded_by(project, *base, loads) if base is not None else None
        if load is not None and quantised(project, load):
            text = "the adapter is merged into quantised weights, and the sum is rounded to their few bits"
            fix = Fix("load the base in bf16 without quantisation, put the adapter on it, then merge")
            yield sighting(__name__, call, text, proof=[load], fix=fix)


def _base(project: Project, node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """The model under the one wrapper that ``node`` is."""
    wrappers: list[Call] = [
        c
        for c in made(project, node, scope)
        if c.name in ("get_peft_model", "PeftModel") or "Peft" in project.called(c)
    ]
    if len(wrappers) != 1 or not wrappers[0].node.args:
        return None
    return wrappers[0].node.args[0], wrappers[0].scope
