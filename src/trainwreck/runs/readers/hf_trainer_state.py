"""Hugging Face ``trainer_state.json``: the log history of a Trainer, kept inside every checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trainwreck.core.evidence import Where
from trainwreck.core.run import Run, Setting
from trainwreck.core.source import Source
from trainwreck.runs.build import number
from trainwreck.runs.readers._jsontext import cell, loads, objects_in
from trainwreck.runs.recorder import MISSING, RunRecorder
from trainwreck.runs.roles import in_context

FORMAT = "hf-trainer-state"
ORDER = 10
STRUCTURED = True

_SUMMARY = ("train_runtime", "train_loss", "total_flos")
"""Keys of the row that the Trainer appends at the end: means over the run, no points of a curve."""
_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_SCALAR = re.compile(r'"(max_steps|global_step|num_train_epochs|logging_steps|train_batch_size)"\s*:\s*([\d.]+)')


def sniff(source: Source) -> bool:
    head = source.head
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{" or source.is_binary:
        return False
    if b'"log_history"' in head:
        return True
    return source.basename == "trainer_state.json" and b'"global_step"' in head


def read(source: Source) -> list[Run]:
    """One run. A cut-off file gives the rows before the cut. Raises ValueError if no log history can be found."""
    text = source.text()
    notes: tuple[str, ...] = ()
    try:
        state = loads(text)
    except ValueError:
        state = _salvage(text)
        notes = ("the file breaks off; the rows before the break were used",)
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise ValueError("no log_history in it")
    if notes and not history:
        raise ValueError("it breaks off before the first row")
    recorder = RunRecorder(source.name, FORMAT, numbered=False)
    finished = _rows(history, recorder)
    planned = number(state.get("max_steps"))
    names = {name for row in history if isinstance(row, dict) for name in row if isinstance(name, str)}
    return recorder.finish(
        skip=["step"],
        roles=in_context(names),
        settings=_settings(state, source.name),
        outcome="completed" if finished else "unknown",
        planned=planned if planned and planned > 0 else None,
        notes=notes,
    ) or [Run(path=source.name, format=FORMAT, series={}, settings=_settings(state, source.name), files=(source.name,))]


def _rows(history: Iterable[Any], recorder: RunRecorder) -> bool:
    """Feed the rows; True if the closing summary of a finished training was among them."""
    finished = False
    for index, row in enumerate(history):
        if not isinstance(row, dict):
            continue
        step = number(row.get("step"))
        summary = any(key in row for key in _SUMMARY)
        finished = finished or summary
        if step is None or summary:
            continue
        names = tuple(str(key) for key in row)
        values = [cell(name, value) for name, value in zip(names, row.values(), strict=True)]
        if any(value != MISSING for value in values):
            recorder.row(names, values, step, index)
    return finished


def _salvage(text: str) -> dict[str, Any]:
    """What a broken state still tells: single numbers and the rows that are whole."""
    state: dict[str, Any] = {key: float(value) for key, value in _SCALAR.findall(text[:100_000] + text[-2000:])}
    start = _HISTORY.search(text)
    state["log_history"] = list(objects_in(text, start.end())) if start else None
    return state


def _settings(state: Mapping[str, Any], path: str) -> dict[str, Setting]:
    where = Where("config", path=path)
    keys = ("num_train_epochs", "train_batch_size", "logging_steps", "eval_steps", "save_steps", "max_steps")
    return {key: Setting(key, state[key], where) for key in keys if isinstance(state.get(key), (int, float))}
