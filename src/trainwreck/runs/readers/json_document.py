"""JSON documents: histories (lists by metric, or rows), end results, and settings. Anything else is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainwreck.core.run import Outcome, Run, StepUnit
from trainwreck.core.source import Source
from trainwreck.runs.build import SeriesBuilder, number
from trainwreck.runs.readers import _columns as columns
from trainwreck.runs.readers._jsontext import LOG_KEYS, cell, flat, loads, objects_in
from trainwreck.runs.readers._settings import is_settings, json_lines_of_keys, settings_of
from trainwreck.runs.recorder import MISSING, RunRecorder
from trainwreck.runs.roles import in_context, role_of

FORMAT = "json"
ORDER = 50
STRUCTURED = True

MAX_BYTES = 256 << 20
"""A larger JSON document has to be read whole; metrics of that size come as rows."""
_NESTED = ("history", "log_history", "metrics", "logs", "log", "results", "epochs", "records", "steps", "train_history")
_RESULT_NAMES = ("result", "metric", "summary", "score", "eval", "performance")


def sniff(source: Source) -> bool:
    if source.is_binary or source.basename.endswith(".ipynb"):
        return False
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    opened = head[:1] == b"{" and head[1:].lstrip()[:1] in (b'"', b"}")
    opened = opened or (head[:1] == b"[" and head[1:].lstrip()[:1] in (b"{", b"["))
    if not opened or source.basename.endswith("json"):
        return opened
    try:  # a log may begin with an object: without the name the whole of it has to be JSON
        return (source.size or 0) <= len(source.head) and isinstance(loads(source.head), (dict, list))
    except ValueError:
        return False


def silent(source: Source) -> bool:
    return sniff(source) and source.basename.endswith((".json", ".jsonl")) and not _is_log(source)


def read(source: Source) -> list[Run]:
    """Runs, or one without series that carries settings, or nothing. Raises ValueError if it is no whole JSON."""
    if (source.size or 0) > MAX_BYTES:
        raise ValueError("the document is too large to be read whole; write metrics as one JSON object a line")
    text = source.text(MAX_BYTES)
    notes: tuple[str, ...] = ()
    try:
        document = loads(text)
    except ValueError:
        if _is_log(source) or not source.basename.endswith("json"):
            return []
        document = list(objects_in(text, text.find("[") + 1)) if "[" in text else None
        if not document:
            raise ValueError("it is no whole JSON document") from None
        notes = ("the file breaks off; the rows before the break were used",)
    for candidate in _candidates(document):
        found = _history(candidate, source.name, notes)
        if found:
            return found
    if isinstance(document, dict):
        return _results(document, source) or _settings(document, source, text)
    return []


def _is_log(source: Source) -> bool:
    head = source.head[:4096].decode("utf-8", "replace")
    return any(f'"{key}"' in head for key in LOG_KEYS)


def _candidates(document: Any) -> Iterator[Any]:
    yield document
    if isinstance(document, dict):
        for key in _NESTED:
            if isinstance(document.get(key), (dict, list)):
                yield document[key]


def _history(document: Any, path: str, notes: tuple[str, ...]) -> list[Run]:
    if isinstance(document, dict):
        return _lists(document, path)
    if isinstance(document, list) and len(document) > 1 and all(isinstance(row, dict) for row in document[:50]):
        return _rows([row for row in document if isinstance(row, dict)], path, notes)
    return []


def _lists(document: Mapping[str, Any], path: str) -> list[Run]:
    """``{"loss": [..], "val_loss": [..]}``, one level of nesting allowed (``{"train": {"loss": [..]}}``)."""
    lists = {
        name: [cell(name, item) for item in value]
        for name, value in flat(document)
        if isinstance(value, list)
        and len(value) > 1
        and sum(number(item) is not None for item in value) > 0.5 * len(value)
    }
    steps = next((name for name in lists if columns.step_column([name.rsplit("/", 1)[-1]])), None)
    names = [name for name in lists if name != steps]
    known = sum(role_of(name) is not None for name in names)
    trained = steps is not None or (len(names) > 1 and known >= 0.8 * len(names))  # boosting: only metrics, no step
    if not columns.is_metrics(names, has_step=trained, all_numeric=True):
        return []
    unit: StepUnit = "row"
    if steps is not None:
        found = columns.step_column([steps.rsplit("/", 1)[-1]])
        unit = found[1] if found else "row"
    builder = SeriesBuilder(path, unit, numbered=False)
    for name in names:
        axis = lists[steps] if steps is not None and len(lists[steps]) == len(lists[name]) else None
        for index, value in enumerate(lists[name]):
            if value != MISSING:
                builder.add(name, axis[index] if axis else float(index), value, index)
    return [Run(path=path, format="json-history", series=builder.series(in_context(names)), files=(path,))]


def _rows(rows: Sequence[Mapping[str, Any]], path: str, notes: tuple[str, ...]) -> list[Run]:
    sample = rows[:40]
    names = sorted({name for row in sample for name, value in flat(row) if number(value) is not None})
    found = columns.step_column(names)
    texts = any(isinstance(value, str) and len(value) > 120 for row in sample for value in row.values())
    metrics = [name for name in names if found is None or name != names[found[0]]]
    if texts or not columns.is_metrics(metrics, has_step=found is not None, all_numeric=not texts and len(names) > 1):
        return []
    step_name = names[found[0]] if found else None
    unit: StepUnit = found[1] if found else "row"
    recorder = RunRecorder(path, "json-rows", unit=unit, numbered=False)
    last = 0.0
    everything: set[str] = set()
    for index, row in enumerate(rows):
        if "train_runtime" in row:
            continue  # the closing row of a Trainer: means over the run
        pairs = list(flat(row))
        keys = tuple(str(name) for name, _ in pairs)
        values = [cell(name, value) for name, value in pairs]
        everything.update(keys)
        if step_name in keys and values[keys.index(step_name)] != MISSING:
            last = values[keys.index(step_name)]
        elif step_name is None:
            last = float(index)
        recorder.row(keys, values, last, index)
    return recorder.finish(skip=[step_name] if step_name else [], roles=in_context(everything), notes=notes)


def _results(document: Mapping[str, Any], source: Source) -> list[Run]:
    """End values in one flat object: all_results.json, train_results.json, wandb-summary.json, metrics.json."""
    if _is_log(source):
        return []
    values = {name: cell(name, value) for name, value in flat(document)}
    values = {name: value for name, value in values.items() if value != MISSING}
    trainer = "train_runtime" in values or "eval_runtime" in values
    named = any(word in source.basename for word in _RESULT_NAMES)
    roles = {name: role_of(name) for name in values}
    strong = any(role in columns.STRONG or role in columns.WEAK for role in roles.values())
    if not (strong and (trainer or named)) or len(values) > 2000:
        return []
    at = next((values[name] for name in ("_step", "step", "global_step", "epoch") if name in values), 0.0)
    unit: StepUnit = "epoch" if "epoch" in values and "_step" not in values and "step" not in values else "step"
    builder = SeriesBuilder(source.name, unit, numbered=False)
    for name, value in values.items():
        builder.add(name, at, value)
    outcome: Outcome = "completed" if "train_runtime" in values else "unknown"
    series = builder.series(in_context(values))
    return [Run(path=source.name, format="results", series=series, outcome=outcome, files=(source.name,))]


def _settings(document: Mapping[str, Any], source: Source, text: str) -> list[Run]:
    if not is_settings(document, source.basename):
        return []
    settings = settings_of(document, source.name, json_lines_of_keys(text))
    return [Run(path=source.name, format="settings", series={}, settings=settings, files=(source.name,))]
