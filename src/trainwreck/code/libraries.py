"""Libraries whose settings stand in files, commands and calls."""

from __future__ import annotations

from trainwreck.code.facts import source
from trainwreck.code.project import Project

LIBRARIES = ("transformers", "trl", "peft", "accelerate", "datasets", "lightning", "vllm", "sglang", "deepspeed")


def configured(project: Project) -> bool:
    """False where nothing can hold settings of a library: no file beside the program, no cell with a command, and no
    word of such a library. What reads settings takes 15 ms to load, and most scripts need none of it."""
    beside = project.program.others or any(walked.top.module.cells for walked in project.walked.values())
    return bool(beside) or any(library in source(project) for library in LIBRARIES)
