"""Hugging Face ``trainer_state.json``: the log history of a Trainer, kept inside every checkpoint."""

from __future__ import annotations

import json

from trainwreck.core.run import Run
from trainwreck.core.source import Source
from trainwreck.runs.build import SeriesBuilder, number

FORMAT = "hf-trainer-state"
ORDER = 10
STRUCTURED = True

_SUMMARY = ("train_runtime", "train_loss", "total_flos")
"""Keys of the row that the Trainer appends at the end: means over the run, no points of a curve."""


def sniff(source: Source) -> bool:
    head = source.head
    return head.lstrip()[:1] == b"{" and (b'"log_history"' in head or source.basename == "trainer_state.json")


def read(source: Source) -> list[Run]:
    """One run. Raises ValueError if the JSON is damaged or holds no log history."""
    state = json.loads(source.text())
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise ValueError("no log_history in it")
    builder = SeriesBuilder(source.name)
    finished = False
    for row in history:
        if not isinstance(row, dict):
            continue
        step = number(row.get("step"))
        summary = any(key in row for key in _SUMMARY)
        finished = finished or summary
        if step is None or summary:
            continue
        for key, value in row.items():
            parsed = number(value)
            if key != "step" and parsed is not None:
                builder.add(key, step, parsed)
    planned = number(state.get("max_steps"))
    return [
        Run(
            path=source.name,
            format=FORMAT,
            series=builder.series(),
            planned=planned if planned and planned > 0 else None,
            outcome="completed" if finished else "unknown",
            files=(source.name,),
        )
    ]
