"""A program without distributed code is started several times over.

What: `torchrun --nproc_per_node` above one (or `accelerate launch`, `deepspeed`) for a script in whose project nothing
sets up a process group: no `init_process_group`, Accelerator, Trainer, Lightning, DeepSpeed or the like.
Why it matters: every process trains a model of its own on the same data, on the same GPU, and overwrites the others'
files.
When it is fine: where the script is only a wrapper of a library that is not in sight.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import source
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.starts import world_of
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = """
#--- train.py
import torch
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(10):
    optimizer.zero_grad()
    net(torch.randn(4, 2)).sum().backward()
    optimizer.step()
#--- run.sh
torchrun --standalone --nproc_per_node=4 train.py  # expect
"""
GOOD = (
    BAD.replace("import torch\n", "import torch\ntorch.distributed.init_process_group()\n").replace("  # expect", ""),
    BAD.replace("nproc_per_node=4", "nproc_per_node=1").replace("  # expect", ""),
    BAD.replace("import torch\n", "import torch\nfrom mylib import setup\nsetup()\n").replace("  # expect", ""),
    """
#--- train.py
from transformers import Trainer
import torch
loss.backward()
#--- run.sh
accelerate launch --num_processes 2 train.py
""",
)
_DISTRIBUTED = pattern(
    r"distributed|[Aa]ccelerat|Trainer|[Ll]ightning|deepspeed|fabric|horovod|hvd\.|LOCAL_RANK|local_rank|\bRANK\b"
    r"|composer|colossalai|\bray\b|megatron|fsdp|FSDP|DDP|mpi4py|ignite|torch_xla|vllm|sglang"
)


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    for launch in settings.launches:
        path = settings.script_of(launch)
        world = world_of(settings, launch)
        if path is None or world is None or world.size < 2 or "import torch" not in source(project):
            continue
        text = project.walked[path].top.module.text
        if "backward(" not in text or _DISTRIBUTED.search(source(project)) or _foreign(project, path):
            continue
        told_text = (
            f"{world.size} processes are started, but nothing in {path} joins them: each trains a model of its own"
        )
        fix = "start it with python, or set up DistributedDataParallel"
        yield told(__name__, launch.place, told_text, proof=world.proof, fix=fix)


_USUAL = pattern(
    r"^(?:torch|torchvision|torchaudio|numpy|pandas|tqdm|matplotlib|PIL|cv2|sklearn|scipy|yaml|wandb|timm|einops|tensorboard"
    r"|transformers|datasets|tokenizers|__future__)$"
)


def _foreign(project: Project, path: str) -> bool:
    """True if the script imports something that is neither well known nor of the project: it may do the joining."""
    import sys

    for binding in (b for bs in project.walked[path].top.bindings.values() for b in bs if b.kind == "import"):
        root = binding.target.lstrip(".").split(".")[0]
        local = any(p == f"{root}.py" or p.endswith(f"/{root}.py") or f"{root}/" in p for p in project.walked)
        if root and root not in sys.stdlib_module_names and not _USUAL.match(root) and not local:
            return True
    return False
