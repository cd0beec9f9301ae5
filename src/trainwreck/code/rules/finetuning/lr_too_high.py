"""A learning rate of supervised training for preference or policy training.

What: ``learning_rate`` of 1e-4 or more in DPO, KTO or GRPO over all parameters.
Why it matters: the policy leaves its reference within a few steps: rewards rise or fall at once and texts fall apart.
When it is fine: with adapters, which take ten times more.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set, imported
from trainwreck.code.facts import only, option
from trainwreck.code.huggingface import arguments_call, trainer_calls, wrapped_for_peft
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from trl import DPOConfig, DPOTrainer
args = DPOConfig(
    output_dir="o",
    learning_rate=2e-4,  # expect
)
DPOTrainer(model=model, args=args, train_dataset=data).train()
""",
)
GOOD = (
    """
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
DPOTrainer(model=model, args=DPOConfig(output_dir="o", learning_rate=5e-7), train_dataset=data).train()
SFTTrainer(model=model, args=SFTConfig(output_dir="o", learning_rate=2e-4), train_dataset=data).train()
DPOTrainer(model=model, args=DPOConfig(output_dir="o", learning_rate=lr), train_dataset=data).train()
""",
    """
from peft import LoraConfig
from trl import DPOConfig, DPOTrainer
args = DPOConfig(output_dir="o", learning_rate=2e-4)
DPOTrainer(model=model, args=args, train_dataset=data, peft_config=LoraConfig(r=8)).train()
""",
    """
from transformers import GPT2Config, GPT2LMHeadModel
from trl import DPOConfig, DPOTrainer
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4))
DPOTrainer(model=model, args=DPOConfig(output_dir="o", learning_rate=2e-4), train_dataset=data).train()
""",
)
MADE = pattern(r"^[A-Z]\w*(ForCausalLM|LMHeadModel)$|^from_config$")
HIGH = 1e-4
"""Published recipes of full DPO and GRPO use 5e-7 to 1e-5 (TRL's defaults are 1e-6), adapters up to 2e-4."""


def find(project: Project) -> Iterator[Evidence]:
    if wrapped_for_peft(project) or "learning_rate" in attributes_set(project) or _from_scratch(project):
        return
    for trainer in trainer_calls(project):
        args = arguments_call(project, trainer)
        if args is None or args.name not in ("DPOConfig", "KTOConfig", "GRPOConfig", "RLOOConfig"):
            continue
        rate = only(project, option(project, args, "learning_rate"))
        if isinstance(rate, float) and rate >= HIGH and imported(project, args, "transformers"):
            place = keyword_place(args, "learning_rate") or args
            text = f"learning_rate={rate:g} over all parameters is far above what {args.name} is used with"
            fix = Fix("1e-6 to 1e-5, or an adapter")
            yield sighting(__name__, place, text, proof=[trainer], fix=fix, severity="warning")


def _from_scratch(project: Project) -> bool:
    """True where the program makes a language model from a configuration: a small one, whose rate is larger."""
    return any(MADE.search(name) and calls for name, calls in project.calls_by_name.items())
