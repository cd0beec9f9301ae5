"""Evaluation is asked for, but no data are held back for it.

What: `eval_strategy` (or `eval_steps`, `evals_per_epoch`) in a LLaMA-Factory or axolotl configuration with a validation
share of 0 and no evaluation data.
Why it matters: the Trainer refuses to start, or no evaluation ever happens and the best checkpoint is never chosen.
When it is fine: with `eval_dataset` or `test_datasets`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.bags import training
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- sft.yaml
model_name_or_path: x/y
stage: sft
finetuning_type: lora
template: qwen
dataset: mine
eval_strategy: steps  # expect
eval_steps: 100
""",
    """
#--- axo.yaml
base_model: x/y
datasets:
  - path: x
val_set_size: 0
evals_per_epoch: 4  # expect
""",
)
GOOD = """
#--- sft.yaml
model_name_or_path: x/y
stage: sft
finetuning_type: lora
template: qwen
val_size: 0.1
eval_strategy: steps
#--- sft2.yaml
model_name_or_path: x/y
stage: sft
finetuning_type: lora
template: qwen
eval_dataset: held
eval_strategy: steps
#--- axo.yaml
base_model: x/y
datasets:
  - path: x
val_set_size: 0.05
evals_per_epoch: 4
#--- axo2.yaml
base_model: x/y
datasets:
  - path: x
test_datasets:
  - path: y
val_set_size: 0
eval_steps: 4
#--- axo3.yaml
base_model: x/y
datasets:
  - path: x
val_set_size: 0
evals_per_epoch: 0
"""


def find(project: Project) -> Iterator[Evidence]:
    for bag in training(project):
        if bag.document is None or bag.reader == "trainer":
            continue
        share = bag.get("val_size", "val_set_size")
        if (share is not None and share.number != 0) or not bag.whole:
            continue
        if any(bag.document.has(name) for name in ("eval_dataset", "test_datasets", "eval_dataset_dir")):
            continue
        asked = bag.get("eval_strategy", "evaluation_strategy", "evals_per_epoch", "eval_steps")
        if asked is None or asked.false or (asked.word in ("no", "") and not asked.number):
            continue
        if bag.reader == "axolotl" and share is None:
            continue
        text = f"{asked.said}, but nothing is held back to evaluate on"
        size = "val_size" if bag.reader == "llamafactory" else "val_set_size"
        fix = f"set {size}, or name data to evaluate on"
        yield told(__name__, asked, text, proof=[share] if share is not None else [], fix=fix)
