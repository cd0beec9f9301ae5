"""Quantised weights are trained as they are.

What: a model in 4 or 8 bits goes to a trainer, and nothing in the program makes an adapter.
Why it matters: integer weights have no gradients; the Trainer refuses.
When it is fine: with LoRA or another adapter, or for evaluation only.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.huggingface import (
    loaded_by,
    model_loads,
    quantised,
    trainer_calls,
    trainer_option,
    wrapped_for_peft,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer
def main(args, data):
    four = BitsAndBytesConfig(load_in_4bit=True)
    model = AutoModelForCausalLM.from_pretrained("m", quantization_config=four)
    Trainer(model=model, args=args, train_dataset=data).train()  # expect
""",
)
GOOD = (
    """
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTTrainer
def main(args, data):
    four = BitsAndBytesConfig(load_in_4bit=True)
    model = AutoModelForCausalLM.from_pretrained("m", quantization_config=four)
    SFTTrainer(model=model, args=args, train_dataset=data, peft_config=LoraConfig()).train()
""",
    """
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer
def main(args, data, small):
    model = AutoModelForCausalLM.from_pretrained("m", quantization_config=BitsAndBytesConfig(load_in_4bit=True))
    print(Trainer(model=model, args=args, eval_dataset=data).evaluate())
""",
)


def find(project: Project) -> Iterator[Evidence]:
    if wrapped_for_peft(project) or not any(True for _ in project.calls("train")):
        return
    for trainer in trainer_calls(project):
        given = trainer_option(project, trainer, "model")
        load = loaded_by(project, *given, model_loads(project)) if given is not None else None
        if load is not None and quantised(project, load):
            text = "the model is quantised and has no adapter: its weights can't be trained"
            fix = Fix("add a LoraConfig, or load the model unquantised")
            yield sighting(__name__, trainer, text, proof=[load], fix=fix)
