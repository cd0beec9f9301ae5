"""A learning rate in a configuration or a command that is far above every recipe for what is trained.

What: ten times the usual rate and more for full fine-tuning, LoRA, DPO or GRPO of a language model, or Adam above 0.1.
Why it matters: the loss swings or climbs and the weights are lost within the warm-up.
When it is fine: with Adafactor, SGD or another optimizer whose rates are of another size, and for models that are not
known to be pretrained.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.catalogue.tables import family, settings_table
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.bags import Bag, training
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- sft.yaml
model_name_or_path: meta-llama/Llama-3.1-8B
output_dir: out
learning_rate: 2.0e-3  # expect
per_device_train_batch_size: 2
num_train_epochs: 3
bf16: true
""",
    """
#--- dpo.sh
trl dpo --model_name_or_path Qwen/Qwen2.5-7B-Instruct --dataset_name d --output_dir o --learning_rate 5e-4  # expect
""",
    """
#--- axo.yaml
base_model: mistralai/Mistral-7B-v0.1
datasets:
  - path: x
adapter: lora
lora_r: 16
learning_rate: 0.02  # expect
micro_batch_size: 2
""",
)
GOOD = """
#--- a.yaml
base_model: mistralai/Mistral-7B-v0.1
datasets:
  - path: x
adapter: qlora
learning_rate: 0.0002
micro_batch_size: 2
#--- b.yaml
model_name_or_path: google/t5-v1_1-base
output_dir: out
optim: adafactor
learning_rate: 1.0e-3
per_device_train_batch_size: 2
#--- c.yaml
model_name_or_path: ./my_cnn
output_dir: out
learning_rate: 1.0e-3
per_device_train_batch_size: 2
save_steps: 10
#--- d.sh
trl sft --model_name_or_path Qwen/Qwen2.5-7B --output_dir o --learning_rate 2e-4 --use_peft --lora_r 16
trl sft --model_name_or_path Qwen/Qwen2.5-7B --output_dir o --learning_rate $LR
"""
PREFERENCE = frozenset(["DPOConfig", "GRPOConfig", "KTOConfig", "RLOOConfig", "ORPOConfig", "CPOConfig", "PPOConfig"])
_ADAM = pattern(r"adamw?(?:_|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    rates = settings_table("ranges")["rate"]
    for bag in training(project):
        rate = bag.get("learning_rate")
        number = rate.number if rate is not None else None
        optimizer = bag.get("optim", "optimizer")
        if rate is None or number is None or bag.python or not _is_adam(optimizer.word if optimizer else ""):
            continue
        kind, limit = _limit(bag, rates)
        if number > limit:
            text = f"learning rate {rate.text} for {kind}: recipes stay {number / (limit / 10):.0f} times below it"
            proof = [s for s in (bag.get("model_name_or_path", "base_model", "model_name"), optimizer) if s is not None]
            yield told(__name__, rate, text, proof=proof, severity="warning")


def _is_adam(word: str) -> bool:
    return not word or bool(_ADAM.match(word))


def _limit(bag: Bag, rates: dict[str, float]) -> tuple[str, float]:
    model = bag.get("model_name_or_path", "base_model", "model_name")
    known = family(model.value) if model is not None and isinstance(model.value, str) else ""
    if not known:
        return "Adam", rates["any_adam"]
    lora = uses_lora(bag)
    preference = bag.owner in PREFERENCE or _word(bag, "stage", "rl") in ("dpo", "kto", "orpo", "grpo", "ppo")
    if preference:
        return ("preference optimisation with LoRA", rates["preference_lora"]) if lora else (
            "preference optimisation of all weights", rates["preference"])  # fmt: skip
    return ("LoRA", rates["lora"]) if lora else ("fine-tuning a language model", rates["full"])


def uses_lora(bag: Bag) -> bool:
    """True if an adapter is trained, also where that is only likely."""
    names = (
        "use_peft",
        "use_lora",
        "lora_r",
        "lora_rank",
        "lora_alpha",
        "lora_target",
        "lora_target_modules",
        "adapter",
    )
    if _word(bag, "finetuning_type") == "full":
        return False
    return any(name in bag.values for name in names) or _word(bag, "finetuning_type") in ("lora", "oft")


def _word(bag: Bag, *names: str) -> str:
    found = bag.get(*names)
    return found.word if found is not None else ""
