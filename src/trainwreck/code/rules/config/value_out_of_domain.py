"""A value of a setting that cannot be meant.

What: a negative learning rate, a warm-up ratio above 1, a beta or a dropout of 1 and more, a batch size below 1, a
memory share of SGLang of 1 and more.
Why it matters: the library refuses it, or the formula makes no sense with it; a ratio above 1 was meant as steps.
When it is fine: never, for the names in the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.project import Project
from trainwreck.code.settings.bags import bags
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- sft.yaml
output_dir: out
learning_rate: -1.0e-4  # expect
per_device_train_batch_size: 2
warmup_ratio: 100  # expect
num_train_epochs: 1
""",
    """
#--- serve.sh
vllm serve org/model --gpu-memory-utilization 0  # expect
python -m sglang.launch_server --model-path x --mem-fraction-static 1.2  # expect
""",
    """
from transformers import TrainingArguments
args = TrainingArguments("out", warmup_ratio=500, learning_rate=1e-4)  # expect
""",
)
GOOD = """
#--- sft.yaml
output_dir: out
learning_rate: 1e-4
per_device_train_batch_size: 2
warmup_ratio: 0.03
weight_decay: 0
adam_beta2: 0.95
#--- serve.sh
vllm serve org/model --gpu-memory-utilization 0.95 --max-model-len 4096
#--- other.yaml
learning_rate: -3
#--- train.py
from transformers import TrainingArguments
args = TrainingArguments("out", warmup_ratio=0.1, learning_rate=rate)
"""


def find(project: Project) -> Iterator[Evidence]:
    domain = settings_table("ranges")["domain"]
    for bag in bags(project):
        if bag.reader not in ("trainer", "llamafactory", "axolotl", "vllm", "sglang"):
            continue
        for name, setting in bag.values.items():
            limits = domain.get(name)
            number = setting.number if limits is not None else None
            if limits is not None and number is not None and (wrong := _wrong(number, limits)):
                yield told(__name__, setting, f"{name} is {setting.text}, but {wrong}{_meant(name, number)}")


def _wrong(number: float, limits: dict[str, Any]) -> str:
    if number < limits.get("low", number):
        return f"nothing below {limits['low']:g} makes sense"
    if "above" in limits and number <= limits["above"]:
        return f"it has to be above {limits['above']:g}"
    if number > limits.get("high", number):
        return f"nothing above {limits['high']:g} makes sense"
    if "below" in limits and number >= limits["below"]:
        return f"it has to stay below {limits['below']:g}"
    return ""


def _meant(name: str, number: float) -> str:
    if name == "warmup_ratio" and number > 1 and float(number).is_integer():
        return "; warmup_steps is meant?"
    return ""
