"""A value of a setting that cannot be meant.

What: a negative learning rate, a warm-up ratio above 1, a beta or a dropout of 1 and more, a batch size below 1, a
memory share of SGLang of 1 and more; the same in the constructors of torch, and a step schedule whose rate grows.
Why it matters: the library refuses it, or the formula makes no sense with it; a ratio above 1 was meant as steps.
When it is fine: never, for the names in the table.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.libraries import configured
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.values import number
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
    """
from torch import nn, optim
drop = nn.Dropout(10)  # expect
rnn = nn.LSTM(8, 8, num_layers=2, dropout=1.5)  # expect
opt = optim.AdamW(drop.parameters(), lr=1e-3, betas=(0.9, 99.9))  # expect
plan = optim.lr_scheduler.StepLR(opt, 10, gamma=1.5)  # expect
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
#--- plain.py
from torch import nn, optim
from mine import Dropout
drop, other = nn.Dropout(0.5), Dropout(10)
opt = optim.AdamW(drop.parameters(), lr=1e-3, betas=(0.9, 0.999))
plan = optim.lr_scheduler.StepLR(opt, 10, gamma=0.5)
search = optim.lr_scheduler.ExponentialLR(opt, gamma=1.1)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from _settings(project)
    yield from _constructors(project)


def _constructors(project: Project) -> Iterator[Evidence]:
    """Arguments of torch's own classes that are written out, or can be worked out."""
    table = settings_table("ranges")["torch"]
    for call in project.calls(*table):
        if not project.called(call).startswith("torch."):
            continue
        for name, limits in table[call.name].items():
            given = call.argument(name, limits.get("at"))
            for part in given.elts if isinstance(given, ast.Tuple | ast.List) else [given]:
                known = number(project, part, call.scope)
                if part is not None and known is not None and (wrong := _wrong(known, limits)):
                    yield sighting(__name__, call, f"{name} of {call.name} is {known:g}, but {wrong}")


def _settings(project: Project) -> Iterator[Evidence]:
    if not configured(project):
        return
    from trainwreck.code.settings.bags import bags
    from trainwreck.code.settings.told import told

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
