"""Our own recordings: events as JSON lines (``rank0.jsonl``), and numbers in blocks beside them (``rank0.twr``).

The layout is told in record/inside/store.py. What a kill has torn is left out; the rest stands.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, Outcome, Run
from trainwreck.core.source import RECORDING_MAGIC, Source
from trainwreck.runs.build import SeriesBuilder, number
from trainwreck.runs.roles import role_of

FORMAT = "trainwreck-recording"
ORDER = 1
STRUCTURED = True
BLOCK = b"\x93TWB"
PREFIX = struct.Struct("<III")
MISSING_BITS = 0x7FF8_0000_5452_574B
ENDINGS: dict[str, Outcome] = {"SIGINT": "interrupted", "SIGKILL": "killed", "SIGTERM": "killed", "SIGHUP": "killed"}
"""How a process ended that a signal ended; other signals are crashes."""
MAX_BLOCK = 256 << 20
"""Bytes of one block; more is no recording of ours."""


def sniff(source: Source) -> bool:
    return source.head.startswith((b'{"trainwreck_recording":', RECORDING_MAGIC))


def read(source: Source) -> list[Run]:
    """One run: the series of a file of numbers, or the events of a file of lines."""
    return [_numbers(source) if source.head.startswith(RECORDING_MAGIC) else _events(source)]


def _events(source: Source) -> Run:
    events: list[Event] = []
    outcome: Outcome = "killed"
    ranks: list[int] = []
    code: int | None = None
    for line in source.lines():
        try:
            row = json.loads(line.text)
        except ValueError:
            continue
        if not isinstance(row, dict):
            continue
        if "trainwreck_recording" in row and isinstance(row.get("rank"), int):
            ranks.append(row["rank"])
        if "event" not in row:
            continue
        module, path = row.get("module"), row.get("path")
        where = Where(
            "code" if isinstance(path, str) else "tensor",
            path=path if isinstance(path, str) else source.name,
            line=row["line"] if isinstance(path, str) and isinstance(row.get("line"), int) else None,
            step=number(row.get("step")),
            module=module if isinstance(module, str) else None,
        )
        facts = {k: v for k, v in row.items() if k not in ("event", "text", "step", "module", "path", "line")}
        events.append(Event(str(row["event"]), str(row.get("text", "")), where, facts or None))
        outcome = "completed" if row["event"] == "ended" else outcome
        if row["event"] == "exit" and isinstance(row.get("code"), int):
            outcome = ENDINGS.get(str(row.get("signal")), "crashed") if row["code"] else "completed"
            code = None if row.get("traceback") else row["code"]  # the traceback says more
    return Run(
        source.name, FORMAT, {}, events=events, outcome=outcome, exit_code=code, files=(source.name,), ranks=ranks
    )


def _numbers(source: Source) -> Run:
    builder = SeriesBuilder(source.name, numbered=False)
    with source.open() as stream:
        for facts, columns in _blocks(stream):
            _add(builder, facts, columns)
    return Run(source.name, FORMAT, builder.series(roles(builder.columns)), files=(source.name,))


def roles(names: Iterable[str]) -> dict[str, str | None]:
    """Roles of our own columns: those of an optimizer's table have one, what frames and modules hold has none."""
    found: dict[str, str | None] = {}
    for name in names:
        table, _, rest = name.rpartition("/") if name.startswith(_OTHER_TABLES) else ("", "", name)
        first, _, part = rest.partition("/")
        if table:
            found[name] = None
        elif first == "logged":
            found[name] = _logged(part)
        elif re.match(r"optimizer\d+$", first):
            column = part.partition("/")[0]
            found[name] = {"loss": "loss-term", "grad_norm": "grad-norm-term"}.get(column)
        elif first == "term":
            role = role_of(part)
            found[name] = role if role in TERM_ROLES else "loss-term"
        else:
            found[name] = ROLES.get(rest, ROLES.get(f"{first}/"))
    return found


def _logged(name: str) -> str | None:
    """The role of a value that the program logged itself; what we measure better than it logs has none."""
    if name.startswith("term/"):
        role = role_of(name.removeprefix("term/"))
        return role if role in TERM_ROLES else "loss-term"
    role = role_of(name)
    return None if role in ROLES.values() else role


_OTHER_TABLES = ("frame", "objective", "modules", "batches", "attention", "copies", "thread")
ROLES = {
    "loss": "loss",
    "lr": "lr",
    "grad_norm": "grad-norm",
    "grad_norm/": "grad-norm-term",
    "update_ratio": "update-ratio",
    "weight_norm": "weight-norm",
    "weight_norm/": "weight-norm-term",
    "loss_scale": "loss-scale",
    "skipped": "skipped",
    "seconds": "step-time",
    "data_seconds": "data-time",
    "memory": "memory",
}
TERM_ROLES = ("kl", "entropy", "policy-loss", "value-loss", "generator-loss", "discriminator-loss", "gradient-penalty")
"""Roles that the name of a term may give it; any other is a term of the loss."""


def _add(builder: SeriesBuilder, facts: dict[str, Any], columns: list[array[float]]) -> None:
    """The columns of one block as points of series: ``loss``, ``optimizer1/loss``, ``frames/…``."""
    names = facts["columns"]
    if "step" not in names:
        return
    table = str(facts["table"])
    prefix = "" if table == "steps" else f"{table}/"
    steps = columns[names.index("step")]
    for name, values in zip(names, columns, strict=True):
        if name == "step":
            continue
        bits = array("Q", values.tobytes())
        kept = [i for i, b in enumerate(bits) if b != MISSING_BITS and math.isfinite(steps[i])]
        if kept:
            places = array("q", [0]) * len(kept)
            builder.extend(
                prefix + str(name), array("d", [steps[i] for i in kept]), array("d", [values[i] for i in kept]), places
            )


def _blocks(stream: BinaryIO) -> Iterator[tuple[dict[str, Any], list[array[float]]]]:
    """The whole blocks in order; after a damaged one the search goes on at the next mark."""
    stream.read(len(RECORDING_MAGIC))
    held = b""
    while True:
        held += stream.read(1 << 20)
        start = held.find(BLOCK)
        if start < 0:
            more = stream.read(1 << 20)
            if not more:
                return
            held = held[-len(BLOCK) :] + more
            continue
        held = held[start:]
        size = len(BLOCK) + PREFIX.size
        if len(held) < size:
            held += stream.read(1 << 20)
            if len(held) < size:
                return
        header_length, body_length, crc = PREFIX.unpack(held[len(BLOCK) : size])
        end = size + header_length + body_length
        if end <= MAX_BLOCK and len(held) < end:
            held += stream.read(end - len(held) + (1 << 20))
        block = _decoded(held[size : size + header_length], held[size + header_length : end], crc)
        if block is None or len(held) < end:
            held = held[len(BLOCK) :]
            continue
        yield block
        held = held[end:]


def _decoded(header: bytes, body: bytes, crc: int) -> tuple[dict[str, Any], list[array[float]]] | None:
    if zlib.crc32(body, zlib.crc32(header)) != crc:
        return None
    try:
        facts = json.loads(header)
        rows, names = facts["rows"], facts["columns"]
        data = zlib.decompressobj().decompress(body, MAX_BLOCK)
        cells = array("d", data[: len(data) // 8 * 8])
    except (ValueError, KeyError, TypeError, zlib.error):
        return None
    if not isinstance(rows, int) or not isinstance(names, list) or rows < 1 or len(cells) != rows * len(names):
        return None
    return facts, [cells[i : i + rows] for i in range(0, len(cells), rows)]
