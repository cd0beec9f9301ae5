"""The trainer scales gradients of weights that are fp16 already.

What: a model is loaded in float16 and trained as a whole with ``fp16=True``.
Why it matters: the gradient scaler refuses to unscale fp16 gradients: the first step raises.
When it is fine: with adapters in fp32 over a frozen fp16 base, with float32 weights, or bf16.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.calls import Call, written
from trainwreck.code.facts import only, option
from trainwreck.code.huggingface import (
    arguments_call,
    loaded_by,
    model_loads,
    trainer_calls,
    trainer_option,
    wrapped_for_peft,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def main(data):
    model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.float16)  # expect
    args = TrainingArguments(output_dir="o", fp16=True)
    Trainer(model=model, args=args, train_dataset=data).train()
""",
    """
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments
def build():
    return AutoModelForSequenceClassification.from_pretrained(
        "m",
        dtype="float16",  # expect
    )
def main(data):
    model = build()
    Trainer(model, TrainingArguments("o", fp16=True), train_dataset=data).train()
""",
)
GOOD = (
    """
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def main(data):
    model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.float32)
    Trainer(model=model, args=TrainingArguments("o", fp16=True), train_dataset=data).train()
    half = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.float16)
    Trainer(model=half, args=TrainingArguments("o", bf16=True), train_dataset=data).train()
""",
    """
import torch
from peft import get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def main(data, config):
    model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.float16)
    model = get_peft_model(model, config)
    Trainer(model=model, args=TrainingArguments("o", fp16=True), train_dataset=data).train()
""",
)
HALF = ("torch.float16", "torch.half", "'float16'", "'fp16'")


def find(project: Project) -> Iterator[Evidence]:
    frozen = "requires_grad" in attributes_set(project) or any(True for _ in project.calls("requires_grad_"))
    if wrapped_for_peft(project) or frozen or "fp16" in attributes_set(project):
        return
    for trainer in trainer_calls(project):
        args, given = arguments_call(project, trainer), trainer_option(project, trainer, "model")
        if args is None or given is None or only(project, option(project, args, "fp16")) is not True:
            continue
        load = loaded_by(project, *given, model_loads(project))
        name = _half(project, load) if load is not None else ""
        if load is not None and name and not option(project, load, "quantization_config"):
            place = keyword_place(load, name) if load.line != load.node.end_lineno else None
            text = "the weights are fp16 and fp16=True scales their gradients: the scaler refuses"
            yield sighting(__name__, place or load, text, proof=[args], fix=Fix("load the weights in float32"))


def _half(project: Project, load: Call) -> str:
    for name in ("dtype", "torch_dtype"):
        value = option(project, load, name)
        if value is None:
            continue
        node: ast.expr = value[0]
        bindings = project.lookup(node.id, value[1]) if isinstance(node, ast.Name) else []
        if len(bindings) == 1 and bindings[0].value is not None and not bindings[0].path:
            node = bindings[0].value
        if written(node) in HALF:
            return name
    return ""
