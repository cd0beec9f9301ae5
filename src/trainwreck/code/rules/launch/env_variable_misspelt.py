"""An environment variable is one slip away from the one that libraries read.

What: `CUDA_VISIBLE_DEVICE`, `TOKENIZER_PARALLELISM`, `PYTORCH_CUDA_ALLOC_CONFIG` and the like, set in a script, a
notebook or through `os.environ`.
Why it matters: nobody reads it, so that nothing changes and nobody says so.
When it is fine: where the program reads that very name itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.facts import source
from trainwreck.code.project import Project
from trainwreck.code.settings.accepted import close
from trainwreck.code.settings.told import told
from trainwreck.code.settings.variables import assigned
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- run.sh
export CUDA_VISIBLE_DEVICE=0,1  # expect
export TOKENIZER_PARALLELISM=false  # expect
python train.py
PYTORCH_CUDA_ALLOC_CONFIG=expandable_segments:True python train.py  # expect
""",
    """
import os
os.environ["CUDA_VISABLE_DEVICES"] = "1"  # expect
os.environ.setdefault("HF_HUB_OFLINE", "1")  # expect
import torch
""",
)
GOOD = (
    """
#--- run.sh
export CUDA_VISIBLE_DEVICES=0 NCCL_DEBUG=INFO WANDB_NOTES=x MODEL_NAME=y HF_HOME=/data WANDB_TAGS=a
export MASTER_PORTS=1
python train.py
#--- train.py
import os
port = os.environ["MASTER_PORTS"]
""",
    """
import os
os.environ["MY_CUDA_VISIBLE"] = "1"
os.environ["WANDB_NAME"] = "run"
""",
)
LEAST = 0.93
"""Similarity (difflib): one missing, doubled or wrong letter in a name of fourteen or more."""
SHORTEST = 8


def find(project: Project) -> Iterator[Evidence]:
    known = frozenset(settings_table("environment")["known"])
    for item in assigned(project):
        name = item.name
        if name in known or len(name) < SHORTEST or "_" not in name or name != name.upper():
            continue
        meant = close(name, known, LEAST)
        if not meant or _read(project, name):
            continue
        text = f"nobody reads {name}; {meant} is meant?"
        yield told(__name__, item.name_place, text, fix=f"write {meant}", key=name)


def _read(project: Project, name: str) -> bool:
    """True if the program or its scripts use this very name besides setting it."""
    uses = len(re.findall(rf"(?:environ(?:\.\w+)?|getenv)\W{{1,4}}{re.escape(name)}\b", source(project)))
    sets = sum(a.name == name and a.node is not None for a in assigned(project))
    return uses > sets or any(f"${name}" in text or f"${{{name}" in text for text in _texts(project))


def _texts(project: Project) -> Iterator[str]:
    from trainwreck.code.beside import texts

    yield from (text for _, text in texts(project, ("shell",)))
