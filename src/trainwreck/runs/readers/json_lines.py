"""JSON lines: LLaMA-Factory, detectron2, mmcv and MMEngine, fairseq-like and home-made logs, one object a row."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainwreck.core.run import Run, StepUnit
from trainwreck.core.source import Source
from trainwreck.runs.build import number
from trainwreck.runs.readers import MIXED
from trainwreck.runs.readers import _columns as columns
from trainwreck.runs.readers._jsontext import LOG_KEYS, cell, flat, loads
from trainwreck.runs.recorder import MISSING, RunRecorder
from trainwreck.runs.roles import in_context

FORMAT = "jsonl"
ORDER = 30
STRUCTURED = True

_SAMPLE_ROWS = 40
_SPLIT_KEYS = ("mode", "split", "phase", "stage")
_MAX_DAMAGED = 0.5
_LONGEST_LINE = 4 << 20


def sniff(source: Source) -> bool:
    rows = list(_sample(source))
    if not rows or any(LOG_KEYS & row.keys() for row in rows):
        return False
    names = {name for row in rows for name, value in flat(row) if number(value) is not None}
    long = [str(row[k]) for row in rows for k in ("metric", "name", "key", "tag") if isinstance(row.get(k), str)]
    has_step = columns.step_column(sorted(names)) is not None
    if long and {"value"} & names:
        return columns.is_metrics(long, has_step=has_step, all_numeric=False)
    metrics = [n for n in names if columns.step_column([n]) is None]
    words = any(isinstance(value, str) and len(value) > 200 for row in rows for value in row.values())
    if words or (len(rows) < 2 and not (has_step and source.basename.endswith(("jsonl", "ndjson")))):
        return False
    return columns.is_metrics(metrics, has_step=has_step, all_numeric=not words)


def silent(source: Source) -> bool:
    """Rows of data in JSON: nobody should look for error messages in them."""
    rows = list(_sample(source))
    return len(rows) > 1 and not any(LOG_KEYS & row.keys() for row in rows)


def read(source: Source) -> list[Run]:
    """One run for each attempt. Raises ValueError if most of the lines are no JSON."""
    sample = list(_sample(source))
    names = sorted({name for row in sample for name, _ in flat(row)})
    form = _form(names)
    found = columns.step_column([n for n in names if any(cell(n, v) != MISSING for v in _values_of(sample, n))])
    unit: StepUnit = found[1] if found else "row"
    recorder = RunRecorder(source.name, form, unit=unit)
    state = _Rows(form, recorder)
    good = damaged = foreign = 0
    for at, text in _lines(source):
        try:
            row = loads(text)
        except ValueError:
            text = text.strip(b"\0 \t\r\n")
            damaged += bool(text)
            foreign += bool(text) and not text.startswith(b"{")
            continue
        if isinstance(row, dict):
            good += 1
            state.take(row, at)
    if damaged > _MAX_DAMAGED * (good + damaged):
        raise ValueError(f"{damaged} of {good + damaged} lines are no JSON")
    notes = [f"{damaged} damaged lines were left out"] if damaged else []
    notes += [MIXED] if foreign else []
    return recorder.finish(
        skip=state.step_names,
        roles=in_context(state.names),
        planned=state.planned,
        outcome="completed" if state.finished else "unknown",
        notes=notes,
    )


def _lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """Numbered lines as bytes; a line longer than any row is cut, which makes it damaged."""
    if source.encoding != "utf-8":
        yield from ((line.number, line.text.encode()) for line in source.lines())
        return
    with source.open() as stream:
        count = 0
        while raw := stream.readline(_LONGEST_LINE):
            count += 1
            if count == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if raw != b"\n":
                yield count, raw


class _Rows:
    """Turns objects into rows of the recorder; what a set of keys means is worked out once."""

    def __init__(self, form: str, recorder: RunRecorder) -> None:
        self.form, self.recorder = form, recorder
        self.planned: float | None = None
        self.finished = False
        self.names: set[str] = set()
        self.step_names: list[str] = []
        self._meaning: dict[tuple[str, ...], tuple[int | None, int | None]] = {}
        self._plain: dict[tuple[str, ...], int] = {}
        self._last = 0.0
        self._count = 0

    def take(self, row: Mapping[str, Any], line: int) -> None:
        """One object. Rows of numbers only whose keys are known take the short way."""
        plain = self._plain.get(tuple(row))
        if plain is not None:
            try:
                cells = array("d", row.values())
            except (TypeError, OverflowError):
                self._take(row, line)
                return
            self._count += 1
            self._last = cells[plain]
            self.recorder.row(tuple(row), cells, self._last, line)
            return
        self._take(row, line)

    def _take(self, row: Mapping[str, Any], line: int) -> None:
        pairs = list(flat(row)) if any(isinstance(value, dict) for value in row.values()) else list(row.items())
        names = tuple(str(name) for name, _ in pairs)
        values = [cell(name, value) for name, value in pairs]
        if all(value == MISSING for value in values):
            return
        step_at, epoch_at = self._places(names, values)
        self._count += 1
        if step_at is not None and values[step_at] != MISSING and not self._aside(row, names):
            self._last = values[step_at]
        elif step_at is None and not self.step_names:
            self._last = float(self._count)
        planned = row.get("total_steps")
        if isinstance(planned, (int, float)) and not isinstance(planned, bool) and planned > 0:
            self.planned = float(planned)
            self.finished = self._last >= 0.999 * self.planned
        counted = step_at is not None and epoch_at in (None, step_at) and planned is None and self.form != "mm-json"
        if counted and step_at is not None and all(type(value) in (int, float) for value in row.values()):
            self._plain[names] = step_at
        split = next((row[key] for key in _SPLIT_KEYS if isinstance(row.get(key), str)), None)
        key = next((row[k] for k in ("metric", "name", "key", "tag") if isinstance(row.get(k), str)), None)
        if key is not None and "value" in names:
            names, values = (str(key),), [values[names.index("value")]]
        elif split is not None:
            keep = {step_at, epoch_at}
            names = tuple(n if i in keep else f"{split}/{n}" for i, n in enumerate(names))
        epoch = values[epoch_at] if epoch_at not in (None, step_at) and epoch_at < len(values) else None
        self.names.update(names)
        self.recorder.row(names, values, self._last, line, epoch=epoch)

    def _places(self, names: tuple[str, ...], values: Sequence[float]) -> tuple[int | None, int | None]:
        known = self._meaning.get(names)
        if known is None:
            usable = [name if value != MISSING else "-" for name, value in zip(names, values, strict=True)]
            found = columns.step_column(usable)
            known = self._meaning[names] = (found[0] if found else None, columns.epoch_column(usable))
            if found and names[found[0]] not in self.step_names:
                self.step_names.append(names[found[0]])
        return known

    def _aside(self, row: Mapping[str, Any], names: tuple[str, ...]) -> bool:
        """Validation rows of mmcv count their own batches, those of MMEngine epochs: they stand at the last step."""
        if self.form != "mm-json" or self._count < 2:
            return False
        return row.get("mode") in ("val", "test") or not {"lr", "iter", "loss", "base_lr"} & set(names)


def _values_of(rows: Sequence[Mapping[str, Any]], name: str) -> Iterator[Any]:
    return (value for row in rows for key, value in flat(row) if key == name)


def _sample(source: Source) -> Iterator[dict[str, Any]]:
    """The objects among the first lines; nothing if the first line is none."""
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head[:1] != b"{" or source.is_binary:
        return
    cut = len(source.head) < (source.size or 0)
    lines = head.splitlines()[: _SAMPLE_ROWS + 1]
    if cut and len(lines) <= _SAMPLE_ROWS:
        lines = lines[:-1]
    for index, line in enumerate(lines[:_SAMPLE_ROWS]):
        try:
            row = loads(line.strip()) if line.strip() else None
        except ValueError:
            if index == 0:
                return
            continue
        if isinstance(row, dict):
            yield row


def _form(names: Sequence[str]) -> str:
    have = set(names)
    if "current_steps" in have:
        return "llamafactory-jsonl"
    if "eta_seconds" in have and "iteration" in have:
        return "detectron2-json"
    if ("mode" in have and "iter" in have) or {"base_lr", "iter"} <= have or {"data_time", "iter", "memory"} <= have:
        return "mm-json"
    if "_step" in have or "_runtime" in have:
        return "wandb-history-jsonl"
    return "jsonl"
