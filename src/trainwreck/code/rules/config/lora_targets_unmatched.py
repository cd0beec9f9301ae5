"""Target modules of LoRA that the model does not have.

What: `lora_target`, `lora_target_modules` in a configuration or a command with names of layers of another architecture.
Why it matters: PEFT raises "Target modules … not found in the base model".
When it is fine: `all`, `all-linear`, expressions, and models of which nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.catalogue import hub
from trainwreck.code.project import Project
from trainwreck.code.settings.bags import training
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- sft.yaml
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
template: qwen
lora_target: c_attn,c_proj  # expect
""",
    """
#--- axo.yaml
base_model: mistralai/Mistral-7B-v0.1
adapter: lora
datasets:
  - path: x
lora_target_modules:
  - query_key_value  # expect
""",
    """
#--- run.sh
trl sft --model_name_or_path Qwen/Qwen2.5-7B --output_dir o --use_peft --lora_target_modules query value  # expect
""",
)
GOOD = """
#--- sft.yaml
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
template: qwen
lora_target: all
#--- axo.yaml
base_model: mistralai/Mistral-7B-v0.1
adapter: lora
datasets:
  - path: x
lora_target_modules:
  - q_proj
  - extra
#--- run.sh
trl sft --model_name_or_path my/model --output_dir o --use_peft --lora_target_modules query value
"""
NAMES = ("lora_target", "lora_target_modules", "lora_modules", "target_modules")


def find(project: Project) -> Iterator[Evidence]:
    for bag in training(project):
        targets, model = bag.get(*NAMES), bag.get("model_name_or_path", "base_model")
        if bag.python or targets is None or model is None or not isinstance(model.value, str):
            continue
        known = hub.checkpoint(model.value)
        names = targets.value if isinstance(targets.value, tuple) else [targets.value]
        words = [w for n in names if isinstance(n, str) for w in re.split(r"[,\s]+", n) if w]
        if known is None or len(known.linear_layers) < 3 or not words:
            continue
        there = {*known.linear_layers, "lm_head", "embed_tokens"}
        if any(w.startswith("all") or not re.fullmatch(r"[\w.]+", w) or w in there for w in words):
            continue
        layers = ", ".join(sorted(known.linear_layers))
        text = f"{model.text} has no layers {', '.join(words)}; its linear layers are {layers}"
        yield told(__name__, targets, text, proof=[model])
