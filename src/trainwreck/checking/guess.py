"""``trainwreck PATH`` without a verb: what is there decides what is done, and that is said."""

from __future__ import annotations

import os

from trainwreck.collect import SKIPPED_DIRECTORIES

PROGRAMS = (".py", ".pyw", ".ipynb")
RUNS = (".log", ".out", ".err", ".jsonl", ".csv", ".tsv", ".wandb")
RUN_NAMES = ("trainer_state.json", "metrics.json", "events.out.tfevents", "log.txt", "train.txt", "stdout", "stderr")
MAX_ENTRIES = 5000
"""Entries of a directory tree that are looked at before the names seen so far decide."""


def verb(path: str) -> tuple[str, str]:
    """``check`` or ``diagnose``, and the reason in a few words."""
    if path == "-":
        return "diagnose", "standard input"
    if not os.path.isdir(path):
        if path.lower().endswith(PROGRAMS):
            return "check", "a program"
        return "diagnose", "a log or a metrics file"
    programs, seen = False, 0
    for _, directories, names in os.walk(path):
        directories[:] = sorted(d for d in directories if d not in SKIPPED_DIRECTORIES)
        for name in names:
            if name.lower().endswith(RUNS) or name.startswith(RUN_NAMES):
                return "diagnose", f"a directory with {name}"
            programs = programs or name.endswith(PROGRAMS)
        seen += len(names)
        if seen > MAX_ENTRIES:
            break
    return ("check", "a directory with programs and no logs") if programs else ("diagnose", "a directory")
