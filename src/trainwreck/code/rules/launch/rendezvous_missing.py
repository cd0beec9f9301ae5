"""Several nodes without a place to meet.

What: `torchrun --nnodes` above one with neither `--rdzv_endpoint` nor `--master_addr`, or `--standalone` with
several nodes.
Why it matters: every node waits for the others at its own 127.0.0.1; the job hangs until the time-out, or each node
trains a model of its own.
When it is fine: where the options come from variables of the environment (PET_…) or of the script.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = """
#--- run.sh
torchrun --nnodes=2 --nproc_per_node=8 train.py  # expect
NODES=4
python -m torch.distributed.run --standalone --nnodes $NODES --nproc_per_node 8 train.py  # expect
accelerate launch --num_machines 2 --num_processes 16 --machine_rank 0 train.py  # expect
"""
GOOD = """
#--- run.sh
torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$HEAD:29500 train.py
torchrun --nnodes=2 --node_rank=$R --master_addr=10.0.0.1 --master_port 29500 train.py
torchrun --standalone --nproc_per_node=8 train.py
torchrun --nnodes $N --nproc_per_node 8 $RDZV train.py
PET_RDZV_ENDPOINT=a:1 torchrun --nnodes 2 train.py
accelerate launch --config_file multi.yaml --num_machines 2 train.py
"""


def find(project: Project) -> Iterator[Evidence]:
    for launch in of(project).launches:
        if launch.launcher == "accelerate":
            nodes, meeting = launch.option("num_machines"), launch.option("main_process_ip", "config_file")
        elif launch.launcher == "torchrun":
            nodes, meeting = launch.option("nnodes"), launch.option("rdzv_endpoint", "master_addr", "rdzv_conf")
        else:
            continue
        if nodes is None or (nodes.integer or 1) < 2:
            continue
        if any(name.startswith(("PET_", "ACCELERATE_")) for name in launch.env):
            continue
        alone = launch.option("standalone")
        if alone is not None:
            text = f"--standalone is for one node, but --nnodes is {nodes.integer}: the nodes never meet"
            yield told(__name__, alone.place, text, proof=[nodes.place])
        elif meeting is None:
            wanted = "--main_process_ip" if launch.launcher == "accelerate" else "--rdzv_endpoint or --master_addr"
            text = f"{nodes.integer} nodes, but no {wanted}: each waits for the others at its own address"
            yield told(__name__, nodes.place, text, fix=f"give {wanted} with the address of the first node")
