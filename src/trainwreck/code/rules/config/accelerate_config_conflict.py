"""An accelerate configuration that contradicts itself.

What: `distributed_type: NO` with several processes; a DeepSpeed file together with the keys that it replaces; one of
fp16 and bf16 in accelerate and the other in the training arguments; no multiple of the machines.
Why it matters: accelerate refuses the combination, or starts one process where several were meant.
When it is fine: `num_processes: 1`, and DeepSpeed files without further keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.bags import bags
from trainwreck.code.settings.starts import starts
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Document
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: 'NO'
num_machines: 1
num_processes: 4  # expect
""",
    """
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: ds.json
  zero_stage: 3  # expect
  gradient_accumulation_steps: 4
num_machines: 1
num_processes: 8
""",
    """
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
mixed_precision: fp16  # expect
num_machines: 1
num_processes: 2
#--- run.sh
accelerate launch --config_file acc.yaml train.py --bf16 True --output_dir o --learning_rate 1e-4
""",
    """
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
num_machines: 3
num_processes: 8  # expect
""",
)
GOOD = """
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: 'NO'
mixed_precision: bf16
num_machines: 1
num_processes: 1
#--- ds.yaml
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: ds.json
  zero3_init_flag: true
  deepspeed_multinode_launcher: standard
num_machines: 2
num_processes: 16
#--- inline.yaml
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 2
  gradient_accumulation_steps: 1
num_processes: 8
#--- run.sh
accelerate launch --config_file acc.yaml train.py --bf16 --output_dir o --learning_rate 1e-4
"""
REPLACED = (
    "gradient_accumulation_steps",
    "gradient_clipping",
    "zero_stage",
    "offload_optimizer_device",
    "offload_optimizer_nvme_path",
    "offload_param_device",
    "offload_param_nvme_path",
    "zero3_save_16bit_model",
)
"""Keys of which accelerate 1.15 says that a DeepSpeed file replaces them (DeepSpeedPlugin.deepspeed_config_process)."""


def find(project: Project) -> Iterator[Evidence]:
    for bag in bags(project):
        if bag.reader == "accelerate" and bag.document is not None:
            yield from _inside(bag.document)
    seen: set[str] = set()
    for start in starts(project):
        document = start.accelerate
        precision = document.get("mixed_precision") if document is not None else None
        if document is None or precision is None or precision.word not in ("fp16", "bf16") or document.path in seen:
            continue
        other = "bf16" if precision.word == "fp16" else "fp16"
        theirs = start.bag.true(other)
        if theirs is not None and start.bag.reader == "trainer":
            seen.add(document.path)
            text = f"accelerate is told {precision.word}, the trainer {theirs.said}: the trainer's argument decides"
            yield told(__name__, precision, text, proof=[theirs], severity="warning")


def _inside(document: Document) -> Iterator[Evidence]:
    kind, count = document.get("distributed_type"), document.get("num_processes")
    size = count.value if count is not None and type(count.value) is int else None
    if kind is not None and count is not None and size is not None and size > 1:
        if kind.word == "no" or kind.value is False:
            text = f"distributed_type is NO, but num_processes is {size}: one process is started"
            yield told(
                __name__, count, text, proof=[kind], fix="distributed_type: MULTI_GPU, or one", severity="warning"
            )
        machines = document.get("num_machines")
        nodes = machines.value if machines is not None and type(machines.value) is int else 1
        if nodes > 1 and size % nodes and machines is not None:
            text = f"num_processes {size} counts all machines and is no multiple of num_machines {nodes}"
            yield told(__name__, count, text, proof=[machines])
    file = document.get("deepspeed_config", "deepspeed_config_file")
    if file is not None and isinstance(file.value, str):
        for keys, setting in document.settings.items():
            name = keys[-1]
            inside = len(keys) == 2 and keys[0] == "deepspeed_config" and name in REPLACED
            if inside and setting.word != "none" and setting.value is not None:
                text = (
                    f"{name} stands beside deepspeed_config_file, which replaces it: accelerate refuses both together"
                )
                yield told(__name__, setting, text, proof=[file], on_key=True, fix=f"remove {name}")
                break
