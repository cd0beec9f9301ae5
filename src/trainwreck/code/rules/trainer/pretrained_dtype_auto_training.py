"""All weights are trained in the low precision of the checkpoint.

What: a checkpoint that is stored in bf16 or fp16 is loaded without a dtype and trained as a whole, with transformers 5,
where the default is the dtype of the checkpoint (it was float32).
Why it matters: AdamW's updates are smaller than what bf16 weights can hold, so that part of them is lost; with fp16
weights training overflows.
When it is fine: with a dtype, with adapters or a frozen base, for inference, below transformers 5.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.facts import complete, option
from trainwreck.code.huggingface import (
    checkpoint_of,
    loaded_by,
    model_loads,
    release,
    trainer_calls,
    trainer_option,
    wrapped_for_peft,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def main(data):
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")  # expect
    Trainer(model=model, args=TrainingArguments("o", bf16=True), train_dataset=data).train()
""",
)
GOOD = (
    """
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, Trainer, TrainingArguments
def main(data):
    one = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", dtype=torch.float32)
    Trainer(model=one, args=TrainingArguments("o", bf16=True), train_dataset=data).train()
    two = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
    Trainer(model=two, args=TrainingArguments("o"), train_dataset=data).train()
    three = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
    print(three.generate())
""",
    """
from peft import get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
def main(data, config):
    model = get_peft_model(AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B"), config)
    Trainer(model=model, args=TrainingArguments("o", bf16=True), train_dataset=data).train()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    frozen = "requires_grad" in attributes_set(project) or any(True for _ in project.calls("requires_grad_", "float"))
    if wrapped_for_peft(project) or frozen:
        return
    for trainer in trainer_calls(project):
        given = trainer_option(project, trainer, "model")
        load = loaded_by(project, *given, model_loads(project)) if given is not None else None
        if load is None or not complete(project, load) or load.name != "from_pretrained":
            continue
        known = checkpoint_of(project, load)
        since = release(project, "transformers", load.scope.module.path, (5,))
        options = ("dtype", "torch_dtype", "quantization_config", "config")
        if known is None or known.dtype not in ("bf16", "fp16") or since == "no":
            continue
        if all(option(project, load, name) is None for name in options):
            text = f"{known.id} is stored in {known.dtype}; without a dtype transformers 5 trains all weights in it" + (
                "" if since == "yes" else " (older releases load float32)"
            )
            severity: Severity = "warning" if since == "yes" else "suggestion"
            fix = Fix("dtype=torch.float32 with bf16=True in the training arguments")
            yield sighting(__name__, load, text, proof=[trainer], fix=fix, severity=severity)
