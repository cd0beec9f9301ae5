"""A template of another family of models.

What: LLaMA-Factory's `template` (or axolotl's `chat_template`) names a family that is not that of the chat model.
Why it matters: the model gets role marks that it never saw: the loss starts high and the answers do not stop.
When it is fine: for base models, which have no format of their own, and for names of which nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.catalogue.tables import family
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.bags import training
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Setting
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- sft.yaml
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
template: llama3  # expect
cutoff_len: 2048
output_dir: x
""",
    """
#--- run.sh
llamafactory-cli train --model_name_or_path meta-llama/Llama-3.1-8B-Instruct --stage sft \\
    --finetuning_type lora --template llama2  # expect
""",
    """
#--- a.yaml
base_model: mistralai/Mistral-7B-Instruct-v0.3
chat_template: gemma  # expect
datasets:
  - path: x
""",
)
GOOD = """
#--- a.yaml
model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
finetuning_type: full
template: llama3
output_dir: x
#--- b.yaml
model_name_or_path: deepseek-ai/DeepSeek-R1-Distill-Qwen-7B
stage: sft
finetuning_type: lora
template: deepseekr1
#--- c.yaml
model_name_or_path: meta-llama/Llama-3.2-3B-Instruct
stage: sft
finetuning_type: lora
template: llama3
#--- d.yaml
model_name_or_path: Qwen/Qwen3-8B
stage: sft
finetuning_type: lora
template: default
"""
_CHAT = pattern(r"instruct|chat|-it\b|_it\b", re.IGNORECASE)
_GENERATION = pattern(r"llama-?(\d)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    for bag in training(project):
        template, model = bag.get("template", "chat_template"), bag.get("model_name_or_path", "base_model")
        if template is None or model is None or bag.reader == "trainer":
            continue
        if not isinstance(model.value, str) or not _CHAT.search(model.value):
            continue
        if _differ(template, model.value):
            text = f"template {template.text} is not that of {model.text}"
            yield told(__name__, template, text, proof=[model], severity="warning")


def _differ(template: Setting, model: str) -> bool:
    theirs, ours = family(model), family(template.word)
    if not theirs or not ours:
        return False
    if theirs != ours:
        return {theirs, ours} not in ({"mistral", "mixtral"},)
    one, other = _GENERATION.search(template.word), _GENERATION.search(model)
    return theirs == "llama" and one is not None and other is not None and one[1] != other[1]
