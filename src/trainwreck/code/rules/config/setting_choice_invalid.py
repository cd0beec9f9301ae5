"""A setting that takes one of a few words gets another one.

What: `lr_scheduler_type: cosin`, `eval_strategy: step`, `finetuning_type: qlora`, `--dtype fp16` of vLLM and the like,
in YAML, JSON, flags and calls of the training arguments.
Why it matters: the class or the parser refuses the word before training starts.
When it is fine: where the word comes from outside.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.project import Project
from trainwreck.code.settings.accepted import close
from trainwreck.code.settings.bags import Bag, bags
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Setting
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- sft.yaml
output_dir: out
learning_rate: 1.0e-4
per_device_train_batch_size: 2
lr_scheduler_type: cosin  # expect
eval_strategy: step  # expect
optim: adamw_torch
""",
    """
#--- lf.yaml
model_name_or_path: x/y
stage: sft
finetuning_type: qlora  # expect
template: qwen
#--- serve.sh
vllm serve org/model --dtype fp16  # expect
""",
    """
from transformers import TrainingArguments
args = TrainingArguments("out", optim="adamw", save_strategy="epochs")  # expect
""",
    """
#--- ds.json
{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1,
 "scheduler": {"type": "CosineLR"}} // # expect
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: DDP  # expect
mixed_precision: bfloat16  # expect
num_processes: 2
""",
)
GOOD = """
#--- sft.yaml
output_dir: out
learning_rate: 1.0e-4
per_device_train_batch_size: 2
lr_scheduler_type: COSINE
eval_strategy: "no"
save_strategy: no
optim: paged_adamw_8bit
#--- axo.yaml
base_model: x
datasets: []
lr_scheduler: one_cycle
optimizer: adamw_bnb_8bit
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: 'NO'
mixed_precision: 'no'
num_processes: 1
#--- train.py
from transformers import TrainingArguments
args = TrainingArguments("out", lr_scheduler_type=kind, eval_strategy="steps")
#--- serve.sh
vllm serve org/model --dtype $DTYPE
"""
GROUPS = {"trainer": ("trainer",), "llamafactory": ("trainer", "llamafactory")}


def find(project: Project) -> Iterator[Evidence]:
    table = settings_table("choices")
    for bag in bags(project):
        for group in GROUPS.get(bag.reader, (bag.reader,)):
            for name, choices in table.get(group, {}).items():
                setting = _setting(bag, name)
                if setting is not None:
                    yield from _judged(setting, name, choices)


def _setting(bag: Bag, name: str) -> Setting | None:
    if "." in name:
        return bag.document.get(*name.split(".")) if bag.document is not None else None
    return bag.get(name)


def _judged(setting: Setting, name: str, choices: list[str | int]) -> Iterator[Evidence]:
    value = setting.value
    if isinstance(choices[0], int):
        wrong = isinstance(value, int) and not isinstance(value, bool) and value not in choices
    else:
        words = {str(c).lower() for c in choices}
        wrong = isinstance(value, str) and bool(value) and value.lower() not in words and value.isascii()
        wrong = wrong and "$" not in value and not value.startswith(("SchedulerType", "IntervalStrategy"))
    if wrong:
        meant = close(str(value), frozenset(map(str, choices)), 0.6)
        shown = ", ".join(str(c) for c in choices[:8]) + (", …" if len(choices) > 8 else "")
        hint = f"; {meant} is meant?" if meant else ""
        yield told(__name__, setting, f"{name} takes one of {shown}, not {value!r}{hint}")
