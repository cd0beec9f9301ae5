"""Alarms of a growing recording, as they come; of one that is over, those that were raised."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainwreck.core.errors import NothingReadable

POLL_SECONDS = 0.5
PREFIX = "alarm-"


def follow(
    folder: Path, *, wait: bool = True, poll: float = POLL_SECONDS, over: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, Any]]:
    """Alarms and wiring events of all ranks below ``folder``, oldest first; ends when every rank has ended.

    Each is the event with its ``rank``. Without ``wait`` it ends at the end of what is there. ``over`` may end it
    sooner. Raises NothingReadable if ``folder`` is no recording and none appears while waiting.
    """
    places: dict[Path, int] = {}
    ended: set[Path] = set()
    while True:
        files = sorted(folder.glob("rank*.jsonl"))
        if not files and not wait:
            raise NothingReadable(f"{folder}: no recording of trainwreck; give the folder that 'trainwreck run' named")
        for path in files:
            for event in _lines(path, places):
                if event.get("event") == "ended":
                    ended.add(path)
                elif str(event.get("event", "")).startswith((PREFIX, "live-")):
                    yield {**event, "rank": _rank(path)}
        if not wait or over() or (files and ended == set(files)):
            return
        time.sleep(poll)


def _lines(path: Path, places: dict[Path, int]) -> Iterator[dict[str, Any]]:
    """Whole lines that have been added since the last look."""
    try:
        with path.open("rb") as file:
            file.seek(places.get(path, 0))
            data = file.read()
    except OSError:
        return
    whole = data.rfind(b"\n") + 1
    places[path] = places.get(path, 0) + whole
    for line in data[:whole].splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _rank(path: Path) -> int:
    digits = path.name.removeprefix("rank").split(".")[0]
    return int(digits) if digits.isdigit() else 0


def line(event: Mapping[str, Any]) -> str:
    """An event as one line: step, rank, what was seen, what it predicts, what to do."""
    parts = [str(event.get(key)) for key in ("text", "predicts", "advice") if event.get(key)]
    level = f"{event['level']}: " if event.get("level") else ""
    return f"step {event.get('step')} rank {event['rank']}: {level}{'; '.join(parts)}"


def call(command: str, event: Mapping[str, Any]) -> None:
    """Run the user's ``--on-alarm`` command and wait for it; the event stands in its environment."""
    facts = {
        "KIND": str(event.get("event", "")).removeprefix(PREFIX),
        "LEVEL": event.get("level") or "",
        "STEP": event.get("step"),
        "MODULE": event.get("module") or "",
        "TEXT": line(event),
    }
    environment = {**os.environ, **{f"TRAINWRECK_ALARM_{k}": str(v) for k, v in facts.items()}}
    subprocess.run(command, shell=True, env=environment, check=False)
