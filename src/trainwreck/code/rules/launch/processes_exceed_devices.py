"""More processes than visible GPUs.

What: `--nproc_per_node`, `--num_processes`, `--num_gpus` or a tensor-parallel size above the number of devices in
CUDA_VISIBLE_DEVICES (or `gpu_ids`, or the GPUs that a Slurm job asks for).
Why it matters: the surplus ranks ask for a device that is not there ("invalid device ordinal").
When it is fine: on CPU, and where the variable comes from outside the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.index import Settings, of
from trainwreck.code.settings.launch import Launch
from trainwreck.code.settings.starts import accelerate_file, started_here, visible_devices
from trainwreck.code.settings.told import Link, told
from trainwreck.code.settings.tree import Place
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- run.sh
export CUDA_VISIBLE_DEVICES=0,1
GPUS=4
torchrun --standalone --nproc_per_node=$GPUS train.py  # expect
""",
    """
#--- run.sh
CUDA_VISIBLE_DEVICES=0 accelerate launch --num_processes 2 train.py  # expect
CUDA_VISIBLE_DEVICES=2,3 vllm serve org/model --tensor-parallel-size 4  # expect
""",
    """
#--- acc.yaml
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
gpu_ids: 0,1
num_machines: 1
num_processes: 4  # expect
#--- run.sh
accelerate launch --config_file acc.yaml train.py
""",
    """
#--- job.slurm
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:2
torchrun --nproc_per_node 4 train.py  # expect
srun bash -c "torchrun --nnodes 2 --rdzv_endpoint a:1 --nproc_per_node 8 train.py"  # expect
""",
)
GOOD = """
#--- run.sh
CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py
CUDA_VISIBLE_DEVICES=$DEV torchrun --nproc_per_node=8 train.py
CUDA_VISIBLE_DEVICES="" torchrun --nproc_per_node=4 train.py --device cpu
CUDA_VISIBLE_DEVICES=0 torchrun --nproc_per_node=4 train.py --backend gloo
export CUDA_VISIBLE_DEVICES=0,1,2,3
accelerate launch --cpu --num_processes 8 train.py
deepspeed --num_gpus 4 train.py
unset CUDA_VISIBLE_DEVICES
torchrun --nproc_per_node 8 train.py
#--- job.slurm
#SBATCH --gres=gpu:a100:4
torchrun --nproc_per_node 4 train.py
"""
_GRES = pattern(r"^#SBATCH\s+--(?:gres=gpu:|gpus-per-node=)(?:[\w.-]+:)?(\d+)\s*(?:#.*)?$", re.MULTILINE)
_CPU = pattern(r"\b(?:cpu|gloo|no_cuda|use_cpu)\b")


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    for launch in settings.launches:
        if launch.launcher == "accelerate" and launch.option("cpu") is not None:
            continue
        if any(_CPU.search(a.text) for a in launch.args):
            continue
        needed = _needed(settings, launch)
        offered = _offered(settings, project, launch) if needed is not None else None
        if needed is not None and offered is not None and needed[0] > offered[0] > 0:
            text = f"{needed[0]} processes on this machine, but only {offered[0]} GPU{'s' * (offered[0] > 1)} visible"
            yield told(__name__, needed[1], text, proof=[offered[1]])


def _needed(settings: Settings, launch: Launch) -> tuple[int, Place] | None:
    if launch.launcher in ("vllm", "sglang"):
        flag = launch.flag("tensor_parallel_size", "tp_size", "tp")
        flag = flag or next((f for f in launch.flags() if f.written == "-tp"), None)
        return (flag.integer, flag.place) if flag is not None and flag.integer else None
    world = started_here(settings, launch)
    if world is None or not world.proof:
        return None
    return world.per_node, world.proof[0]


def _offered(settings: Settings, project: Project, launch: Launch) -> tuple[int, Link] | None:
    document = accelerate_file(settings, launch)
    if launch.launcher == "accelerate":
        option = launch.option("gpu_ids")
        listed = option.text if option is not None else None
        setting = document.get("gpu_ids") if document is not None and option is None else None
        listed = setting.text if setting is not None else listed
        if listed is not None and re.fullmatch(r"\d+(?:,\d+)*", listed.replace(" ", "")):
            place = setting.place if setting is not None else option.place if option is not None else launch.place
            return len(listed.split(",")), place
        if setting is not None and setting.word not in ("all", ""):
            return None
    visible = visible_devices(launch)
    if visible is not None:
        place = visible[1].place
        return len(visible[0]), (place.path, place.line, f"CUDA_VISIBLE_DEVICES={visible[1].text}")
    if launch.variable("CUDA_VISIBLE_DEVICES") is not None:
        return None
    return _slurm(project, launch)


def _slurm(project: Project, launch: Launch) -> tuple[int, Link] | None:
    from trainwreck.code.beside import texts

    text = next((t for p, t in texts(project, ("shell",)) if p == launch.path), "")
    found = _GRES.search(text)
    if found is None:
        return None
    return int(found[1]), (launch.path, text.count("\n", 0, found.start()) + 1, found[0].strip())
