"""A command names a file at a place where it is not.

What: a script or a configuration (`.py`, `.yaml`, `.json`, `.toml`) of a launch command whose path fits no file of the
project, while exactly one file of that name lies in another directory of it.
Why it matters: the program ends with FileNotFoundError before it starts.
When it is fine: where the script changes the directory, and for files that are made or downloaded first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.beside import texts
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.launch import Launch
from trainwreck.code.settings.shell import Arg
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- config/zero3.json
{"zero_optimization": {"stage": 3}}
#--- train.py
import torch
#--- run.sh
torchrun --standalone --nproc_per_node 2 train.py --deepspeed configs/zero3.json  # expect
""",
    """
#--- src/pkg/train.py
import torch
#--- run.sh
python scripts/train.py --lr 1e-4  # expect
""",
    """
#--- conf/base.yaml
learning_rate: 1.0e-4
#--- train.py
import torch
#--- run.sh
accelerate launch train.py config/base.yaml  # expect
""",
)
GOOD = """
#--- src/train.py
import torch
#--- conf/base.yaml
learning_rate: 1.0e-4
#--- run.sh
python train.py --config conf/base.yaml
python src/train.py --config ./conf/base.yaml --out results/base.json --more $DIR/base.yaml
python other/unknown.py
#--- jobs/go.sh
cd ../elsewhere
python scripts/train.py
#--- made.sh
cp conf/base.yaml tmp/base.yaml
python src/train.py --config tmp/base.yaml
"""
_NAMED = pattern(r"[\w./-]+\.(?:py|yaml|yml|json|toml)$")
_MOVING = pattern(r"^\s*(?:cd|pushd|git clone|wget|curl)\b|\bcp\b|\bln\b|\bmv\b|cat\s*>|\btee\b", re.MULTILINE)


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    moving = {path for path, text in texts(project, ("shell",)) if _MOVING.search(text)}
    for launch in settings.launches:
        if launch.path in moving or launch.path.endswith(".ipynb") or not launch.command.certain:
            continue
        for arg, text in _files(launch):
            base = text.rsplit("/", 1)[-1]
            if "/" not in text or text.startswith(("/", "../", "~")) or settings.find(text, launch.path) is not None:
                continue
            others = settings.named(base)
            if len(others) == 1:
                told_text = f"there is no {text} here; {others[0]} is meant?"
                yield told(__name__, arg.place, told_text, fix=f"write {others[0]}")


def _files(launch: Launch) -> Iterator[tuple[Arg, str]]:
    """What the command names: its script, and the values of its arguments that are configurations."""
    for arg in launch.command.args:
        text = arg.text.partition("=")[2] or arg.text
        writes = re.search(r"out|save|log|result|dump|metric", arg.text)
        if arg.known and _NAMED.match(text) and not text.startswith("-") and not writes:
            yield arg, text
