"""JSON that programs really write: bare NaN and Infinity, half documents, nested rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainwreck.runs.build import number
from trainwreck.runs.recorder import MISSING

_DURATION = re.compile(r"(?:(\d+) days?, )?(\d+):(\d\d):(\d\d)(?:\.\d+)?")
_NO_METRICS = frozenset(("config", "hist_stats", "args", "hparams", "env_info", "_wandb"))
LOG_KEYS = frozenset(
    ("message", "msg", "level", "levelname", "exc_info", "traceback", "log", "stderr", "severity", "exception")
)
"""Keys of structured logging: what carries them is a log, in which errors may stand."""


def loads(text: str | bytes) -> Any:
    """The document. Bare NaN and Infinity, which Python writes and strict parsers reject, are read.

    Raises ValueError if it is no JSON.
    """
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            return json.loads(text if isinstance(text, str) else text.decode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None


def objects_in(text: str, start: int = 0) -> Iterator[dict[str, Any]]:
    """The complete objects of a list that begins at ``start`` (after its bracket), until the text breaks off."""
    decoder = json.JSONDecoder()
    at, end = start, len(text)
    while at < end:
        while at < end and text[at] in " \t\r\n,":
            at += 1
        if at >= end or text[at] != "{":
            return
        try:
            item, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        if isinstance(item, dict):
            yield item


def flat(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Keys and scalar values; nested objects give ``outer/inner``. Configurations and histograms are left out."""
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            if depth < 5 and key not in _NO_METRICS:
                yield from flat(value, f"{name}/", depth + 1)
        else:
            yield name, value


def cell(name: str, value: Any) -> float:
    """A metric value as a number, MISSING where it is none. Durations (``1 day, 2:03:04``) become seconds."""
    if value is None or isinstance(value, bool):
        return MISSING
    if isinstance(value, float):
        return value
    parsed = number(value)
    if parsed is not None:
        return parsed
    if isinstance(value, str) and "time" in name:
        match = _DURATION.fullmatch(value.strip())
        if match:
            days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
            return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    return MISSING
