"""Captures of failing steps: ``origin.json``, laid out in record/inside/describe.py, and the facts in ``capture.json``.

Their events, ``origin`` and ``capture-facts``, join the recording beside which the capture lies.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, Run
from trainwreck.core.source import Source
from trainwreck.runs.build import number

FORMAT = "trainwreck-recording"
ORDER = 1
STRUCTURED = True
MAX_BYTES = 4 << 20
"""An origin is a few kilobytes; a larger file is none of ours."""
HEADS = (b'{"trainwreck_origin":', b'{"trainwreck_capture":')


def sniff(source: Source) -> bool:
    return source.head.startswith(HEADS)


def silent(source: Source) -> bool:
    """A capture's facts are data: nobody looks for errors in the names of its variables."""
    return source.head.startswith(HEADS)


def read(source: Source) -> list[Run]:
    """A run that holds one event, under the name of its rank's recording. Raises ValueError if the file is damaged."""
    with source.open() as stream:
        told = json.loads(stream.read(MAX_BYTES))
    if not isinstance(told, dict):
        raise ValueError("no origin stands in it")
    facts = source.head.startswith(HEADS[1])
    if facts and not isinstance(told.get("variables"), dict):
        return []  # of a crash: its frames are told by the traceback
    rank = told.get("rank") if isinstance(told.get("rank"), int) else 0
    where = Where(
        "code" if isinstance(told.get("path"), str) else "tensor",
        path=told["path"] if isinstance(told.get("path"), str) else source.name,
        line=told["line"] if isinstance(told.get("line"), int) else None,
        step=number(told.get("step")),
        module=_text(told, "module"),
        rank=rank or None,
    )
    event = Event("capture-facts" if facts else "origin", str(told.get("text", ""))[:2000], where, told)
    folder = PurePosixPath(source.name).parent.parent
    name = f"rank{rank}.{'capture' if facts else 'origin'}"
    return [Run(str(folder / name), FORMAT, {}, events=[event], files=(source.name,))]


def _text(told: dict[str, Any], key: str) -> str | None:
    value = told.get(key)
    return value if isinstance(value, str) else None
