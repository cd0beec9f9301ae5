"""Formats of more than one line: box tables, tables with a header, MLPerf records."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from trainwreck.runs.build import number
from trainwreck.runs.console import words as w

BOX_ROW = re.compile(
    r"^\s*[|│]\s?(?P<indent>\s{0,8})(?P<key>[A-Za-z_%][^|│]{0,80}?)\s*[|│]\s*(?P<value>[^|│]{0,40}?)\s*[|│]\s*$"
)
BOX_FRAME = re.compile(r"^\s*[+|┌└├╭╰]?[-─=+┬┴┼]{8,}[+|┐┘┤╮╯]?\s*$")
_STEP_ROWS = (
    "total_timesteps",
    "num_timesteps",
    "total timesteps",
    "timestepssofar",
    "timesteps_so_far",
    "steps",
    "step",
    "iterations",
    "iteration",
    "n_updates",
    "nupdates",
    "epoch",
    "epochs",
    "itr",
    "update",
)
_COUNTER_WORDS = {"epoch", "step", "iter", "iteration", "batch", "ep", "it", "#", "round", "episode", "update", "steps"}
EPOCH_WORDS = frozenset({"epoch", "ep", "round"})
CONFIGURED = re.compile(r"^(?:opt_|model_hp|eval_hp|input_|preproc|hp_)|target|size|train_epoch|_start$|_stop$")
"""MLPerf keys that tell how the run is set up."""
_NAME = re.compile(r"[A-Za-zα-ω%#@_][\w/@%().:\-+'#²]*(?: [\w()%]+){0,2}$")


@dataclass
class Box:
    """A table ``| key | value |`` as stable-baselines3 and the baselines logger print it."""

    group: str = ""
    rows: dict[str, tuple[float, int]] = field(default_factory=dict)

    def row(self, match: re.Match[str], line: int) -> None:
        """Take one row. A key that ends in ``/`` opens a group."""
        key, value = match.group("key").strip(), match.group("value").strip()
        if key.endswith("/") and not value:
            self.group = key
            return
        parsed = number(value)
        if parsed is None:
            return
        name = key if "/" in key or not self.group or not match.group("indent") else self.group + key
        self.rows.setdefault(name, (parsed, line))

    def take(self) -> tuple[float | None, str, dict[str, tuple[float, int]]]:
        """Step, name of its row and all rows of the finished block; starts another."""
        rows, self.rows, self.group = self.rows, {}, ""
        by_last = {name.rsplit("/", 1)[-1].lower(): name for name in rows}
        for wanted in _STEP_ROWS:
            if wanted in by_last:
                return rows[by_last[wanted]][0], by_last[wanted], rows
        return None, "", rows


@dataclass
class Columns:
    """A header of column names and the rows under it."""

    names: tuple[str, ...]
    separator: str
    misses: int = 0

    def read(self, text: str) -> dict[str, str] | None:
        """The cells of a row by name, None if it is no row of this table."""
        cells = _cells(text, self.separator) if self.separator != " " else text.replace(" |", " ").split()
        cells = cells[: len(self.names)] if self.separator == " " and len(cells) > len(self.names) else cells
        if len(cells) != len(self.names):
            return None
        values = [number(cell.removesuffix("G").removesuffix("M")) is not None or "/" in cell for cell in cells]
        if sum(values) < max(2, len(cells) - 2):
            return None
        return dict(zip(self.names, cells, strict=True))


def header(text: str) -> Columns | None:
    """The table that ``text`` opens, None if it is no header: three or more names, a counter first or a metric among
    them."""
    bar = text.find("%|")
    if bar > 0 and text[bar - 1].isdigit():
        text = text[:bar].rstrip("0123456789").rstrip().removesuffix(":")
    if not 8 < len(text) < 400 or text.lstrip()[:1] in "{[(<#":
        return None
    for separator in ("|", "\t", ","):
        if text.count(separator) >= 2:
            names = _cells(text, separator)
            return _columns(names, separator)
    if re.search(r"\S(?:\s{2,})\S", text.strip()):
        return _columns(re.split(r"\s{2,}", text.strip()), " ") or _columns(text.split(), " ")
    return None


def _cells(text: str, separator: str) -> list[str]:
    return (
        [c.strip() for c in text.strip().strip("|│").split(separator)]
        if separator == "|"
        else [c.strip() for c in text.split(separator)]
    )


def _columns(names: list[str], separator: str) -> Columns | None:
    if len(names) < 3 or len(names) > 40 or len(set(names)) != len(names) or not all(_NAME.match(n) for n in names):
        return None
    if separator == " " and any(" " in n for n in names):
        return None
    first = names[0].lower()
    counter = first in _COUNTER_WORDS or first == "class"
    metrics = sum(1 for n in names[1:] if w.METRIC.search(n))
    return Columns(tuple(names), separator) if counter and (metrics or len(names) >= 5) else None


def mlperf(text: str) -> tuple[str, Any, float | None] | None:
    """Key, value and epoch of an MLPerf record (``:::MLL`` with JSON, or the older ``:::MLPv0.5.0 … key: value``)."""
    start = text.find(":::ML")
    if start < 0:
        return None
    if text.startswith(":::MLL", start):
        try:
            record = json.loads(text[text.index("{", start) :])
        except ValueError:
            return None
        if not isinstance(record, dict):
            return None
        meta = record.get("metadata") if isinstance(record.get("metadata"), dict) else {}
        epoch = number((meta or {}).get("epoch_num"))
        return str(record.get("key", ""))[:80], record.get("value"), epoch
    match = re.search(r":::MLP\S*\s+\S+\s+[\d.]+\s+\(.{0,120}?:\d+\)\s+(\w+)(?::\s*(.*))?$", text)
    if match is None:
        return None
    value: Any = (match.group(2) or "").strip()
    epoch = None
    if value.startswith("{"):
        try:
            record = json.loads(value)
        except ValueError:
            return match.group(1), value, None
        if isinstance(record, dict):
            return match.group(1), record.get("value"), number(record.get("epoch"))
    return match.group(1), value, epoch
