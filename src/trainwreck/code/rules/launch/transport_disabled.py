"""A fast way between the GPUs is switched off for a run on several of them.

What: `NCCL_P2P_DISABLE=1`, `NCCL_SHM_DISABLE=1` or `NCCL_IB_DISABLE=1` for a launch of several processes.
Why it matters: gradients travel through the host's memory or plain sockets, several times slower; the variable is
usually left over from a hang on another machine.
When it is fine: on machines whose links are broken or missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.starts import world_of
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = """
#--- run.sh
export NCCL_P2P_DISABLE=1  # expect
export NCCL_IB_DISABLE=1
torchrun --standalone --nproc_per_node=8 train.py
#--- multi.sh
export NCCL_IB_DISABLE=1  # expect
torchrun --nnodes=2 --nproc_per_node=8 --rdzv_endpoint=a:1 --rdzv_backend=c10d train.py
"""
GOOD = """
#--- run.sh
export NCCL_P2P_DISABLE=1
python train.py
NCCL_P2P_DISABLE=0 torchrun --nproc_per_node=8 other.py
#--- one.sh
export NCCL_IB_DISABLE=1
torchrun --standalone --nproc_per_node=8 train.py
"""
BETWEEN = {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1, "NCCL_IB_DISABLE": 2}
"""Nodes from which on each variable matters: InfiniBand is used between nodes only."""


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    seen = set()
    for launch in settings.launches:
        world = world_of(settings, launch)
        if world is None or world.size < 2:
            continue
        for name, nodes in BETWEEN.items():
            found = launch.variable(name)
            if found is None or found.text.strip() != "1" or world.nodes < nodes or found.place in seen:
                continue
            seen.add(found.place)
            link = "InfiniBand between the nodes" if nodes > 1 else "the direct way between the GPUs"
            text = f"{name}=1 switches {link} off for {world.size} processes; without a broken link it only costs time"
            yield told(__name__, found.place, text, proof=[launch.place], key=name)
