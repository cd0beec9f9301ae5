"""A quantised model is trained as a whole.

What: `load_in_4bit`, `load_in_8bit` or `quantization_bit` in a configuration that trains all weights (`finetuning_type:
full`, no `adapter`).
Why it matters: quantised weights take no gradient: LLaMA-Factory and transformers refuse, or nothing is trained.
When it is fine: with LoRA or another adapter.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.bags import Bag, training
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Setting
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- full.yaml
model_name_or_path: x/y
stage: sft
finetuning_type: full
template: qwen
quantization_bit: 4  # expect
""",
    """
#--- axo.yaml
base_model: x/y
load_in_4bit: true  # expect
datasets:
  - path: x
micro_batch_size: 1
""",
    """
#--- run.sh
trl sft --model_name_or_path x/y --dataset_name d --output_dir o --load_in_4bit  # expect
""",
)
GOOD = """
#--- a.yaml
model_name_or_path: x/y
stage: sft
finetuning_type: lora
quantization_bit: 4
template: qwen
#--- b.yaml
base_model: x/y
load_in_4bit: true
adapter: qlora
datasets:
  - path: x
#--- run.sh
trl sft --model_name_or_path x/y --dataset_name d --output_dir o --load_in_4bit --use_peft
trl sft --model_name_or_path x/y --dataset_name d --output_dir o --load_in_4bit $MORE
"""


def find(project: Project) -> Iterator[Evidence]:
    for bag in training(project):
        if bag.python:
            continue
        quantised = bag.true("load_in_4bit") or bag.true("load_in_8bit") or _bits(bag)
        if quantised is None:
            continue
        full = bag.get("finetuning_type")
        if bag.reader == "llamafactory":
            alone = full is not None and full.word in ("full", "freeze")
        elif bag.reader == "axolotl":
            alone = bag.off("adapter")
        else:
            alone = bag.launch is not None and bag.launch.launcher == "trl" and bag.whole and bag.off("use_peft")
        if alone:
            text = f"{quantised.said}, but all weights are to be trained: quantised weights take no gradient"
            proof = [full] if full is not None else []
            yield told(__name__, quantised, text, proof=proof, fix="train an adapter on it")


def _bits(bag: Bag) -> Setting | None:
    found = bag.get("quantization_bit")
    return found if found is not None and found.number else None
