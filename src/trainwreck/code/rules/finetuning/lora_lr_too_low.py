"""An adapter is trained with a learning rate for full fine-tuning.

What: ``learning_rate`` of 5e-6 or less in supervised training of a LoRA adapter; for low-rank matrices that a program
adds itself, a rate for full fine-tuning with so few updates that they stay near zero.
Why it matters: adapters start at zero and need ten times the rate of full fine-tuning: the loss hardly moves.
When it is fine: for preference and policy training, and for going on with a trained adapter.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.facts import made_names, only, option
from trainwreck.code.huggingface import arguments_call, text_has, trainer_calls, trainer_option
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.crawling import crawling
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer
args = SFTConfig(
    output_dir="o",
    learning_rate=1e-6,  # expect
)
SFTTrainer("m", args=args, train_dataset=data, peft_config=LoraConfig(r=8)).train()
""",
)
GOOD = """
from peft import LoraConfig
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
SFTTrainer("m", args=SFTConfig(output_dir="o", learning_rate=2e-4), train_dataset=data, peft_config=LoraConfig(r=8))
SFTTrainer("m", args=SFTConfig(output_dir="o", learning_rate=1e-6), train_dataset=data)
DPOTrainer("m", args=DPOConfig(output_dir="o", learning_rate=1e-6), train_dataset=data, peft_config=LoraConfig(r=8))
"""
LOW = 5e-6
"""LoRA recipes use 1e-4 to 5e-4, full fine-tuning 1e-5 to 5e-5 (arXiv:2305.14314; TRL documentation)."""


def find(project: Project) -> Iterator[Evidence]:
    yield from _of_trainers(project)
    yield from answers(__name__, project, crawling)


def _of_trainers(project: Project) -> Iterator[Evidence]:
    if "learning_rate" in attributes_set(project) or text_has(project, "PeftModel.from_pretrained", "AutoPeft"):
        return
    for trainer in trainer_calls(project):
        args, config = arguments_call(project, trainer), option(project, trainer, "peft_config")
        model = trainer_option(project, trainer, "model")
        if args is None or args.name not in ("TrainingArguments", "SFTConfig"):
            continue
        lora = config is not None and "LoraConfig" in made_names(project, *config)
        wrapped = model is not None and "get_peft_model" in made_names(project, *model)
        rate = only(project, option(project, args, "learning_rate"))
        if (lora or wrapped) and isinstance(rate, float) and 0 < rate <= LOW:
            place = keyword_place(args, "learning_rate") or args
            text = f"learning_rate={rate:g} hardly moves an adapter that starts at zero"
            yield sighting(__name__, place, text, proof=[trainer], fix=Fix("1e-4 to 5e-4"), severity="suggestion")
