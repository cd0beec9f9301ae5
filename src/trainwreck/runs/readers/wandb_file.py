"""The binary ``.wandb`` file of a W&B run: LevelDB log framing around protocol-buffer records.

Taken out: history (both spellings of keys and values), configuration, and the exit record, which is the best single
fact in the directory. A file without one was written by a process that was killed, or that still runs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trainwreck.core.run import Outcome, Run, Setting
from trainwreck.core.source import Source
from trainwreck.runs.readers._jsontext import cell, flat, loads
from trainwreck.runs.readers._settings import settings_of
from trainwreck.runs.readers._wire import fields, signed, text
from trainwreck.runs.recorder import MISSING, RunRecorder
from trainwreck.runs.roles import in_context

FORMAT = "wandb"
ORDER = 5
STRUCTURED = True

BLOCK = 32_768
"""Block size of the LevelDB log format (leveldb doc/log_format.md); a chunk never crosses a block."""
MAX_RECORD = 16 << 20
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_MAGIC = b":W&B"
_HEADER_BYTES = 7
_HISTORY, _CONFIG, _RUN, _EXIT, _FOOTER = 2, 5, 17, 18, 22
_STEPS = ("train/global_step", "trainer/global_step", "global_step")
"""Where a framework logs its own step the history's ``_step`` only counts calls of ``log``."""


def sniff(source: Source) -> bool:
    return source.head.startswith(_MAGIC)


def read(source: Source) -> list[Run]:
    """The run of the file, without series if nothing was logged. Raises ValueError if not one record is whole."""
    recorder = RunRecorder(source.name, FORMAT, numbered=False, cut=False)
    config: dict[str, Any] = {}
    names: set[str] = set()
    code: int | None = None
    notes: list[str] = []
    count, last, damaged = 0, 0.0, 0
    own: str | None = None
    for record in _records(source):
        count += 1
        try:
            for field, _, value in fields(record):
                if not isinstance(value, bytes):
                    continue
                if field == _HISTORY:
                    row = _history(value)
                    own = own or next((name for name in _STEPS if name in row), None)
                    step = row.get(own, MISSING) if own else row.get("_step", MISSING)
                    last = step if step != MISSING else (last if own else last + 1)
                    row = {k: v for k, v in row.items() if v != MISSING}
                    names.update(row)
                    recorder.row(tuple(row), list(row.values()), last, count)
                elif field in (_CONFIG, _RUN):
                    config |= _config(value, nested=field == _RUN)
                elif field == _EXIT:
                    code = next((signed(v) for f, k, v in fields(value) if f == 1 and k == 0), 0)
        except (IndexError, ValueError, struct.error):
            damaged += 1
    if not count:
        raise ValueError("its first record is damaged")
    if damaged:
        notes.append(f"{damaged} damaged records were left out")
    outcome = _outcome(code)
    if code is None:
        notes.append("no exit record: the process was killed or still runs")
    settings: dict[str, Setting] = settings_of(config, source.name)
    skip = [name for name in ("_step", own, "_timestamp") if name]
    runs = recorder.finish(skip=skip, roles=in_context(names), settings=settings, outcome=outcome, notes=notes)
    if not runs:
        runs = [Run(source.name, FORMAT, {}, settings=settings, outcome=outcome, notes=notes, files=(source.name,))]
    return [replace(run, exit_code=code) for run in runs]


def _outcome(code: int | None) -> Outcome:
    """How the recorded exit code reads: 255 is W&B's own for an interruption, 128 + n a signal."""
    if code is None:
        return "unfinished"
    if code == 0:
        return "completed"
    if code in (255, 130, -2):
        return "interrupted"
    return "killed" if code in (137, -9, 143, -15) else "crashed"


def _history(data: bytes) -> dict[str, float]:
    row: dict[str, Any] = {}
    for field, _, value in fields(data):
        if field == 1 and isinstance(value, bytes):
            name, item = _item(value)
            row[name] = item
        elif field == 2 and isinstance(value, bytes):
            step = next((signed(v) for f, k, v in fields(value) if f == 1 and k == 0), 0)
            row.setdefault("_step", step)
    return {name: cell(name, item) for name, item in flat(row)}


def _config(data: bytes, nested: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, _, value in fields(data):
        if not isinstance(value, bytes):
            continue
        if nested and field == 4:
            found |= _config(value, nested=False)
        elif not nested and field == 1:
            name, item = _item(value)
            if name and not name.startswith("_wandb"):
                found[name] = item
    return found


def _item(data: bytes) -> tuple[str, Any]:
    """Key and value of a history, summary or configuration item, in the spellings of all versions."""
    key = ""
    nested: list[str] = []
    value: Any = None
    for field, kind, raw in fields(data):
        if field == 1:
            key = text(raw)
        elif field == 2:
            nested.append(text(raw))
        elif field == 5 and kind == 0:
            value = signed(raw)
        elif field == 6 and isinstance(raw, bytes) and len(raw) == 8:
            value = struct.unpack("<d", raw)[0]
        elif field == 7:
            value = text(raw)
        elif field in (8, 16):
            try:
                value = loads(text(raw))
            except ValueError:
                value = None
    return (key or ".".join(nested)), value


def _records(source: Source) -> Iterator[bytes]:
    """Whole records in order; a cut-off or damaged end simply ends them."""
    with source.open() as stream:
        parts: list[bytes] = []
        size = 0
        skip = _HEADER_BYTES
        while True:
            block = b""
            while len(block) < BLOCK:
                piece = stream.read(BLOCK - len(block))
                if not piece:
                    break
                block += piece
            if not block:
                return
            at, skip = skip, 0
            while at + _CHUNK.size <= len(block):
                _, length, kind = _CHUNK.unpack_from(block, at)
                at += _CHUNK.size
                piece = block[at : at + length]
                at += length
                if kind == 0 and length == 0:
                    break
                if len(piece) < length or kind > _LAST:
                    parts = []
                    break
                if kind == _FULL:
                    yield piece
                elif kind == _FIRST:
                    parts, size = [piece], length
                elif parts:
                    size += length
                    if size > MAX_RECORD:
                        parts = []
                        continue
                    parts.append(piece)
                    if kind == _LAST:
                        yield b"".join(parts)
                        parts = []
