"""Tables: CSV, TSV and semicolon files of Lightning, Keras, stable-baselines3, Ultralytics, timm, DVCLive and anybody.

The content decides: a table whose columns belong to a training is read, a data set or a table of results is not. Wide
tables, long ones (``step,metric,value``), train and validation told by a column of words, folds told by a column,
repeated and changed headers, padded names, rows wider or shorter than the header.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trainwreck.core.run import Run, StepUnit
from trainwreck.core.source import Source, clean
from trainwreck.runs.build import number
from trainwreck.runs.readers import MIXED
from trainwreck.runs.readers import _columns as columns
from trainwreck.runs.readers._csv_formats import name_format, role_overrides
from trainwreck.runs.recorder import MISSING, RunRecorder
from trainwreck.runs.roles import role_of

FORMAT = "delimited"
ORDER = 40
STRUCTURED = True

_DELIMITERS = (",", "\t", ";", " ")
_RUNS_OF_BLANKS = re.compile(r"[ \t]+")
_COMMENTED = re.compile(r"^#\s*[A-Za-z_][\w ./,;\t-]*$")
_STARTS_WITH_NUMBER = re.compile(r"^\s*-?\d")
_TAG = re.compile(r"tag-(.+?)(?:\.csv)?$")
"""TensorBoard's download button writes ``run-NAME-tag-TAG.csv`` with nothing but ``Value`` in its header."""
_SAMPLE_ROWS = 60
_MAX_COLUMNS = 20_000
_CHUNK = 1 << 20
_ABSENT = ("none", "null", "n/a", "na", "-")
_MISSING_TEXT = repr(MISSING)


@dataclass(frozen=True)
class Plan:
    """How a table is to be read. ``skip_lines`` stand before the header (comments such as monitor.csv's)."""

    delimiter: str
    names: tuple[str, ...]
    skip_lines: int
    step: int | None
    unit: StepUnit
    epoch: int | None
    split: int | None
    group: int | None
    long: tuple[int, int] | None
    words: frozenset[int]
    meant: bool


def sniff(source: Source) -> bool:
    plan = _plan(source)
    return plan is not None and plan.meant


def silent(source: Source) -> bool:
    """A table of any kind, a data set too: nobody should look for error messages in it."""
    return source.basename.endswith((".csv", ".tsv")) and _plan(source) is not None


def read(source: Source) -> list[Run]:
    """One run for each attempt or fold. Raises ValueError if the table can't be told apart from text."""
    plan = _plan(source)
    if plan is None:
        raise ValueError("no table in it")
    form = name_format(plan.names, source.basename)
    recorder = RunRecorder(source.name, form, unit=plan.unit)
    foreign = 0
    for start, text in _chunks(source, plan.skip_lines):
        if plan.delimiter == " ":
            text = _blanks(text)
        if not _fast(text, start, plan, recorder):
            foreign += _slow(text, start, plan, recorder)
    skip = [] if plan.step is None or plan.long else [plan.names[plan.step]]
    skip += [plan.names[i] for i in plan.words if plan.long is None]
    if plan.epoch is not None and plan.unit == "epoch":
        skip.append(plan.names[plan.epoch])
    notes = (MIXED,) if foreign else ()
    return recorder.finish(skip=skip, roles=role_overrides(form, plan.names), notes=notes)


def _plan(source: Source) -> Plan | None:
    if source.is_binary:
        return None
    head = source.head.decode(source.encoding, "replace").lstrip("\ufeff")
    complete = head if source.size is not None and source.size <= len(source.head) else head.rpartition("\n")[0]
    lines = clean(complete.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    skip = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if skip is None or lines[skip].lstrip()[:1] in ("{", "[", "<"):
        return None
    if skip and _COMMENTED.match(lines[skip - 1]) and _STARTS_WITH_NUMBER.match(lines[skip]):
        skip -= 1  # numpy.savetxt and gnuplot put the header into a comment
    header = lines[skip].lstrip("# ") if lines[skip].startswith("#") else lines[skip]
    sample = [line for line in lines[skip + 1 : skip + 1 + _SAMPLE_ROWS] if line.strip()]
    for delimiter in _DELIMITERS:
        if delimiter == " ":
            if "|" in header:
                return None  # a table drawn with bars: the console reader knows those
            header, sample = _blanks(header), [_blanks(line) for line in sample]
        plan = _plan_with(delimiter, header, sample, skip)
        if plan is not None:
            return _exported(plan, source.basename)
    return None


def _blanks(text: str) -> str:
    """Columns aligned with blanks: one blank between two cells, none at the ends of a line."""
    return "\n".join(_RUNS_OF_BLANKS.sub(" ", line).strip() for line in text.split("\n"))


def _exported(plan: Plan, basename: str) -> Plan:
    tag = _TAG.search(basename)
    if set(plan.names) != {"Wall time", "Step", "Value"} or tag is None:
        return plan
    name = tag.group(1).replace("_", "/", 1) if role_of(tag.group(1)) is None else tag.group(1)
    names = tuple(name if n == "Value" else n for n in plan.names)
    return replace(plan, names=names, meant=True)


def _plan_with(delimiter: str, header: str, sample: Sequence[str], skip: int) -> Plan | None:
    if delimiter not in header or header.count(delimiter) > _MAX_COLUMNS:
        return None
    try:
        names = _unique([name.strip() for name in next(csv.reader([header], delimiter=delimiter))])
        rows = [row for row in csv.reader(sample, delimiter=delimiter) if row]
    except (csv.Error, StopIteration):
        return None
    if len(names) < 2 or any(number(name) is not None for name in names) or not rows:
        return None
    if any(len(name) > 120 for name in names):
        return None
    fitting = sum(len(row) <= len(names) + 4 and len(row) >= min(2, len(names)) for row in rows)
    if fitting < 0.9 * len(rows):
        return None
    words = frozenset(i for i in range(len(names)) if _is_words([row[i] for row in rows if i < len(row)]))
    found = _step(names, rows, words)
    long = columns.key_and_value(names)
    long = long if long and long[0] in words and long[1] not in words else None
    split = columns.split_column(names, rows)
    group = columns.group_column(names)
    if long:
        metrics = {row[long[0]] for row in rows if long[0] < len(row)}
        meant = columns.is_metrics(metrics, has_step=found is not None, all_numeric=False)
    else:
        meaning = [n for i, n in enumerate(names) if i not in words and (found is None or i != found[0])]
        others = words - ({split} if split is not None else set())
        meant = columns.is_metrics(meaning, has_step=found is not None, all_numeric=not others)
    step = found[0] if found else None
    unit: StepUnit = found[1] if found else "row"
    epoch = columns.epoch_column(names)
    return Plan(delimiter, names, skip, step, unit, epoch, split, group, long, words, meant)


def _step(names: Sequence[str], rows: Sequence[Sequence[str]], words: frozenset[int]) -> tuple[int, StepUnit] | None:
    """The column that counts: named like one, filled, not constant where another one moves."""
    usable = []
    for index, unit in columns.step_candidates(names):
        if index in words:
            continue
        cells = [number(row[index]) for row in rows if index < len(row)]
        values = [cell for cell in cells if cell is not None]
        if len(values) < 0.5 * len(rows):
            continue
        within = columns.epoch_column(names) not in (None, index)
        if columns.counts(values) or within:
            usable.append((index, unit, len(set(values)) > 1 or len(rows) == 1))
    moving = [item for item in usable if item[2]]
    best = (moving or usable)[:1]
    return (best[0][0], best[0][1]) if best else None


def _is_words(cells: Sequence[str]) -> bool:
    """True for a column of texts (a few cells that are no numbers are dirt)."""
    filled = [cell for cell in cells if cell.strip()]
    texts = sum(number(cell) is None and cell.strip().lower() not in _ABSENT for cell in filled)
    return texts > 0.5 * len(filled)


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return tuple(result)


def _chunks(source: Source, skip_lines: int) -> Iterator[tuple[int, str]]:
    """(number of the first line, whole lines) after the header, a megabyte at a time."""
    line = skip_lines + 2
    with source.open() as raw:
        stream = io.TextIOWrapper(raw, encoding=source.encoding, errors="replace", newline=None)
        for _ in range(skip_lines + 1):
            stream.readline(_CHUNK)
        while True:
            text = stream.read(_CHUNK)
            if not text:
                return
            if not text.endswith("\n"):
                text += stream.readline(_CHUNK)
            yield line, text
            line += text.count("\n")


def _fast(text: str, start: int, plan: Plan, recorder: RunRecorder) -> bool:
    """A chunk of plain numbers in one go; False if there is anything else in it."""
    if plan.words or plan.long or plan.group is not None or '"' in text:
        return False
    mark, width = plan.delimiter, len(plan.names)
    body = text[:-1] if text.endswith("\n") else text
    count = body.count("\n") + 1
    if body.count(mark) + count != count * width:
        return False
    framed = f"\n{body}\n"
    if mark + mark in framed or f"\n{mark}" in framed or f"{mark}\n" in framed:
        full = f"{mark}{_MISSING_TEXT}{mark}"
        framed = framed.replace(mark + mark, full).replace(mark + mark, full)
        framed = framed.replace(f"\n{mark}", f"\n{_MISSING_TEXT}{mark}")
        body = framed.replace(f"{mark}\n", f"{mark}{_MISSING_TEXT}\n")[1:-1]
    cells = _numbers(body, mark)
    if cells is None or len(cells) != count * width:
        return False
    if plan.step is None:
        recorder.rows(plan.names, cells, None, start)
        return True
    steps = cells[plan.step :: width]
    whole = steps[0] >= recorder.last_of(plan.names) and MISSING not in steps
    if whole and all(map(float.__le__, steps, steps[1:])):
        recorder.rows(plan.names, cells, plan.step, start)
        return True
    last = 0.0
    for index in range(count):
        row = cells[index * width : (index + 1) * width]
        last = row[plan.step] if row[plan.step] != MISSING else last
        epoch = row[plan.epoch] if plan.epoch not in (None, plan.step) else None
        recorder.row(plan.names, row, last, start + index, epoch=epoch)
    return True


def _numbers(body: str, mark: str) -> array[float] | None:
    """All cells of a chunk, None if one of them is no number. A JSON parser reads four times as fast as ``float``."""
    import orjson

    flat = body.replace("\n", mark)
    try:
        return array("d", orjson.loads(f"[{flat if mark == ',' else flat.replace(mark, ',')}]"))
    except (orjson.JSONDecodeError, TypeError):
        pass
    try:
        return array("d", map(float, flat.split(mark)))
    except ValueError:
        return None


def _slow(text: str, start: int, plan: Plan, recorder: RunRecorder) -> int:
    """Row by row: quotes, words, repeated headers, rows of another width. Returns how many lines were no rows."""
    names, mark = plan.names, plan.delimiter
    last, foreign = 0.0, 0
    lines = text.split("\n")
    if not text.endswith("\n") and len(lines[-1].split(mark)) < len(names):
        lines.pop()  # the last line of a run that was killed while writing it
    for offset, line in enumerate(lines):
        if not line.strip() or line.startswith("#"):
            continue
        row = _cells(clean(line), mark)
        if _is_header(row, plan):
            changed = _unique([cell.strip() for cell in row])
            if changed != plan.names and len(changed) > 1:
                names = changed
            elif plan.step is None:
                recorder.restart(start + offset)
            continue
        if all(number(cell) is None for cell in row):
            foreign += any(cell.strip() for cell in row)
            continue
        last = _row(row, names, last, start + offset, plan, recorder)
    return foreign


def _row(
    row: Sequence[str], names: tuple[str, ...], last: float, line: int, plan: Plan, recorder: RunRecorder
) -> float:
    step_at = plan.step
    if names is not plan.names:
        found = columns.step_column(names)
        step_at = found[0] if found else None
    step = number(row[step_at]) if step_at is not None and step_at < len(row) else None
    last = step if step is not None else (float(line) if step_at is None else last)
    group = row[plan.group].strip() if plan.group is not None and plan.group < len(row) else None
    if plan.long:
        key, value = plan.long
        parsed = number(row[value]) if max(key, value) < len(row) else None
        if parsed is not None:
            name = row[key].strip()
            if plan.split is not None and plan.split < len(row):
                name = f"{row[plan.split].strip().lower()}/{name}"
            recorder.row((name,), (parsed,), last, line, group=group)
        return last
    cells = [number(cell) for cell in row[: len(names)]]
    values = [MISSING if cell is None else cell for cell in cells] + [MISSING] * (len(names) - len(cells))
    epoch_at = plan.epoch if names is plan.names else columns.epoch_column(names)
    epoch = values[epoch_at] if epoch_at not in (None, step_at) else None
    used = names
    if plan.split is not None and names is plan.names and plan.split < len(row):
        word = row[plan.split].strip().lower()
        used = tuple(f"{word}/{n}" if i not in (step_at, epoch_at) else n for i, n in enumerate(names))
    recorder.row(used, values, last, line, epoch=epoch, group=group)
    return last


def _cells(line: str, mark: str) -> list[str]:
    if '"' not in line:
        return line.split(mark)
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error:
        return line.split(mark)


def _is_header(row: Sequence[str], plan: Plan) -> bool:
    known = {name for name in plan.names if name}
    same = sum(cell.strip() in known for cell in row)
    return same >= max(1, 0.5 * min(len(row), len(plan.names))) and all(number(cell) is None for cell in row)
