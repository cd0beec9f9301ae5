"""A DeepSpeed configuration that contradicts itself or the trainer.

What: `train_batch_size` is not micro batch x accumulation x processes (or for no number of processes can be); fp16 and
bf16 both enabled; a value that is not "auto" and differs from the trainer's argument of the same meaning.
Why it matters: DeepSpeed and the Trainer check these and refuse to start.
When it is fine: "auto", one of the three batch sizes left out, and values that are not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.bags import Bag, bags
from trainwreck.code.settings.starts import Start, World, starts
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Document, Setting
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- ds.json
{
  "train_batch_size": 60, // # expect
  "train_micro_batch_size_per_gpu": 8,
  "gradient_accumulation_steps": 2,
  "zero_optimization": {"stage": 2}
}
""",
    """
#--- ds.json
{
  "train_batch_size": 64, // # expect
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 2,
  "bf16": {"enabled": true}
}
#--- run.sh
deepspeed --num_gpus 4 train.py --deepspeed_config ds.json
""",
    """
#--- ds_config.yaml
zero_optimization:
  stage: 2
fp16:
  enabled: true
  loss_scale: 0
bf16:
  enabled: true  # expect
""",
    """
#--- ds.json
{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": "auto",
  "optimizer": {
    "type": "AdamW",
    "params": {"lr": 2e-5, "weight_decay": "auto"} // # expect
  },
  "zero_optimization": {"stage": 3}
}
#--- run.sh
torchrun --standalone --nproc_per_node=8 train.py --output_dir x --deepspeed ds.json \\
    --per_device_train_batch_size 4 --learning_rate 1e-5
""",
    """
#--- ds.json
{
  "bf16": {"enabled": true}, // # expect
  "gradient_accumulation_steps": 8, // # expect
  "zero_optimization": {"stage": 2}
}
#--- train.py
from transformers import TrainingArguments
args = TrainingArguments("out", deepspeed="ds.json", fp16=True, gradient_accumulation_steps=4)
""",
    """
#--- train.py
import deepspeed
config = {
    "train_batch_size": 30,  # expect
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "fp16": {"enabled": True},
    "bf16": {"enabled": True},  # expect
}
engine, *_ = deepspeed.initialize(model=net, config=config)
""",
    """
#--- train.py
from transformers import TrainingArguments
args = TrainingArguments(
    "out",
    bf16=True,
    gradient_accumulation_steps=4,
    deepspeed={
        "zero_optimization": {"stage": 2},
        "gradient_accumulation_steps": 8,  # expect
    },
)
""",
    """
#--- job.sh
cat > ds.json <<EOF
{
  "train_batch_size": 64, // # expect
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 4,
  "zero_optimization": {"stage": 2}
}
EOF
deepspeed --num_gpus 2 train.py --deepspeed ds.json
""",
)
GOOD = (
    """
#--- train.py
from transformers import TrainingArguments
ds = {"zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 8, "bf16": {"enabled": True}}
args = TrainingArguments("out", deepspeed=ds, bf16=True, gradient_accumulation_steps=8)
more = {"zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 8}
more["gradient_accumulation_steps"] = steps
other = TrainingArguments("out", deepspeed=more, gradient_accumulation_steps=4)
""",
    """
#--- ds.json
{
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": 4,
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
  "fp16": {"enabled": false},
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2}
}
#--- train.py
from transformers import TrainingArguments
args = TrainingArguments("out", deepspeed="ds.json", bf16=True, gradient_accumulation_steps=4, learning_rate=1e-5)
""",
    """
#--- ds.json
{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2, "zero_optimization": {}}
#--- run.sh
deepspeed --num_gpus 4 train.py --deepspeed_config ds.json
deepspeed --hostfile hosts train.py --deepspeed_config ds.json
#--- other.json
{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": "auto"}, "fp16": {"enabled": true}}
""",
    """
#--- ds.json
{"zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 8, "fp16": {"enabled": "auto"}}
#--- run.sh
torchrun --standalone --nproc_per_node=2 train.py --deepspeed ds.json --gradient_accumulation_steps $ACC --fp16 True \\
  --output_dir o --learning_rate 1e-4
""",
)
MATCHED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("train_micro_batch_size_per_gpu",), "per_device_train_batch_size"),
    (("gradient_accumulation_steps",), "gradient_accumulation_steps"),
    (("gradient_clipping",), "max_grad_norm"),
    (("optimizer", "params", "lr"), "learning_rate"),
    (("optimizer", "params", "eps"), "adam_epsilon"),
    (("optimizer", "params", "weight_decay"), "weight_decay"),
    (("scheduler", "params", "warmup_max_lr"), "learning_rate"),
    (("fp16", "enabled"), "fp16"),
    (("bf16", "enabled"), "bf16"),
)
"""Keys that transformers compares with its arguments (HfTrainerDeepSpeedConfig.trainer_config_process, 5.24)."""
OTHER_PRECISION = {("fp16", "enabled"): "bf16", ("bf16", "enabled"): "fp16"}


def find(project: Project) -> Iterator[Evidence]:
    used: set[int] = set()
    for start in starts(project):
        if start.deepspeed is not None:
            used.add(id(start.deepspeed))
            yield from _arithmetic(start.deepspeed, start.world)
            if start.bag.reader == "trainer":
                yield from _compared(start, start.deepspeed)
    for bag in bags(project):
        if bag.reader == "deepspeed" and bag.document is not None:
            yield from _precision(bag.document)
            if id(bag.document) not in used:
                yield from _arithmetic(bag.document, None)


def _whole(setting: Setting | None) -> int | None:
    if setting is None or setting.number is None or not setting.number.is_integer() or setting.number < 1:
        return None
    return int(setting.number)


def _arithmetic(document: Document, world: World | None) -> Iterator[Evidence]:
    total = document.get("train_batch_size")
    micro = document.get("train_micro_batch_size_per_gpu")
    steps = document.get("gradient_accumulation_steps")
    whole, each, times = _whole(total), _whole(micro), _whole(steps)
    if total is None or whole is None or micro is None or each is None or (steps is not None and times is None):
        return
    product = each * (times or 1)
    shown = f"{each} x {times}" if times else f"{each}"
    proof = [s for s in (micro, steps) if s is not None]
    if world is not None and times is not None and whole != product * world.size:
        text = f"train_batch_size {whole} is not {shown} x {world.size} processes = {product * world.size}"
        fix = f"write {product * world.size}, or leave it out"
        yield told(__name__, total, text, proof=[*proof, *world.proof], fix=fix)
    elif whole % product:
        text = f"train_batch_size {whole} is no multiple of {shown} = {product}: it fits no number of processes"
        yield told(__name__, total, text, proof=proof, fix="leave train_batch_size out: it follows from the others")


def _precision(document: Document) -> Iterator[Evidence]:
    half, brain = document.get("fp16", "enabled"), document.get("bf16", "enabled")
    if half is not None and brain is not None and half.value is True and brain.value is True:
        yield told(__name__, brain, "fp16 and bf16 are both enabled; DeepSpeed refuses that", proof=[half])


def _compared(start: Start, document: Document) -> Iterator[Evidence]:
    bag: Bag = start.bag
    for keys, name in MATCHED:
        mine, theirs = document.get(*keys), bag.get(name)
        if mine is None or mine.word == "auto":
            continue
        other = bag.get(OTHER_PRECISION[keys]) if keys in OTHER_PRECISION else None
        if theirs is None and other is not None and other.true and mine.value is True:
            text = f"DeepSpeed's {keys[0]} is enabled, but the trainer is told {other.said}"
            yield told(__name__, mine, text, proof=[other], fix='write "auto" in the DeepSpeed file')
        elif theirs is not None and _differ(mine, theirs):
            text = f"{'.'.join(keys)} is {mine.text} for DeepSpeed, but {theirs.said} for the trainer, which refuses it"
            yield told(__name__, mine, text, proof=[theirs], fix='write "auto" in the DeepSpeed file')


def _differ(one: Setting, other: Setting) -> bool:
    if isinstance(one.value, bool):
        return (one.value and other.false) or (not one.value and other.true)
    left, right = one.number, other.number
    return left is not None and right is not None and abs(left - right) > 1e-12 * max(abs(left), abs(right))
