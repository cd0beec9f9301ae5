"""Our own recordings: one JSON object a line, first a head, then steps and events (see record/inside/recorder.py)."""

from __future__ import annotations

import json
from typing import Any

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, Outcome, Run
from trainwreck.core.source import Source
from trainwreck.runs.build import SeriesBuilder, number

FORMAT = "trainwreck-recording"
ORDER = 1
STRUCTURED = True


def sniff(source: Source) -> bool:
    return source.head.startswith(b'{"trainwreck_recording":')


def read(source: Source) -> list[Run]:
    """One run. A last line that was cut by a kill is left out; the rest stands."""
    builder = SeriesBuilder(source.name)
    events: list[Event] = []
    outcome: Outcome = "killed"
    for line in source.lines():
        try:
            row = json.loads(line.text)
        except ValueError:
            continue
        if not isinstance(row, dict):
            continue
        if "event" in row:
            where = Where(
                "tensor", path=source.name, line=line.number, step=number(row.get("step")), module=row.get("module")
            )
            events.append(Event(str(row["event"]), str(row.get("text", "")), where))
            outcome = "completed" if row["event"] == "ended" else outcome
        elif (step := number(row.get("step"))) is not None:
            _add(builder, step, row, line.number)
    return [Run(source.name, FORMAT, builder.series(), events=events, outcome=outcome, files=(source.name,))]


def _add(builder: SeriesBuilder, step: float, row: dict[str, Any], line: int) -> None:
    prefix = f"optimizer{row['optimizer']}/" if row.get("optimizer") else ""
    for name in ("loss", "lr", "grad_norm"):
        value = number(row.get(name))
        if value is not None:
            builder.add(prefix + name, step, value, line)
    norms = row.get("grad_norms")
    if isinstance(norms, dict) and len(norms) > 1:
        for module, value in norms.items():
            parsed = number(value)
            if parsed is not None:
                builder.add(f"{prefix}grad_norm/{module}", step, parsed, line)
