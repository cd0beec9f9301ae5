"""A switch for debugging is left on in a launch script.

What: `CUDA_LAUNCH_BLOCKING=1` or `TORCH_DISTRIBUTED_DEBUG=DETAIL` exported for a training, or set in its program.
Why it matters: every kernel is waited for (or every collective is checked), so that the run is slower from the first
step to the last.
When it is fine: while a fault is looked for; scripts that are named after it are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.told import told
from trainwreck.code.settings.variables import Assigned, assigned
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- run.sh
export CUDA_LAUNCH_BLOCKING=1  # expect
torchrun --nproc_per_node 8 train.py --lr 1e-4
TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun --nproc_per_node 8 train.py  # expect
""",
    """
import os
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # expect
import torch
def main(loss, optimizer):
    loss.backward()
    optimizer.step()
""",
)
GOOD = """
#--- debug_run.sh
export CUDA_LAUNCH_BLOCKING=1
python train.py
#--- run.sh
export CUDA_LAUNCH_BLOCKING=0 TORCH_DISTRIBUTED_DEBUG=INFO NCCL_DEBUG=WARN
python train.py
#--- debug.py
import os
if DEBUG:
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
"""
SWITCHES = {
    "CUDA_LAUNCH_BLOCKING": (re.compile(r"1$"), "every kernel is waited for, which slows the whole run down"),
    "TORCH_DISTRIBUTED_DEBUG": (re.compile(r"DETAIL$"), "every collective is checked first, which slows the run down"),
}
_DEBUGGING = pattern(r"debug|repro|test|trace|profile", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    started = {launch.path for launch in of(project).launches}
    for item in assigned(project):
        pattern, effect = SWITCHES.get(item.name, (None, ""))
        if pattern is None or not item.text or not pattern.match(item.text.strip()):
            continue
        if _DEBUGGING.search(item.place.path.rsplit("/", 1)[-1]) or not _for_training(project, item, started):
            continue
        text = f"{item.name}={item.text} is for finding a fault: {effect}"
        yield told(__name__, item.place, text, fix=f"remove {item.name} once the fault is found", key=item.name)


def _for_training(project: Project, item: Assigned, started: set[str]) -> bool:
    if item.node is None or item.scope is None:
        return item.place.path in started
    if item.scope.kind != "module" or project.parent(item.node, item.scope) is not item.scope.node:
        return False
    return "backward" in project.calls_by_name or "train" in project.calls_by_name
