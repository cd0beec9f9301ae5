"""MLflow's file store: ``<experiment>/<run>/metrics/<name>``, ``params/<name>`` and ``meta.yaml``."""

from __future__ import annotations

import re
from dataclasses import replace

from trainwreck.core.evidence import Where
from trainwreck.core.run import Outcome, Run, Setting
from trainwreck.core.source import Source
from trainwreck.runs.build import number
from trainwreck.runs.recorder import RunRecorder

FORMAT = "mlflow"
ORDER = 20
STRUCTURED = True

_PATH = re.compile(
    r"^(?P<run>(?:.*/)?(?:[0-9a-f]{32}|\d+/[^/]+))/(?P<kind>metrics|params|meta\.yaml)(?:/(?P<name>.+))?$"
)
_METRIC = re.compile(rb"^\d{9,14} \S+(?: -?\d+)?(?: .*)?$")
_STATUS: dict[str, Outcome] = {
    "1": "unfinished", "2": "unknown", "3": "completed", "4": "crashed", "5": "killed",
    "RUNNING": "unfinished", "FINISHED": "completed", "FAILED": "crashed", "KILLED": "killed",
}  # fmt: skip
"""Codes of RunStatus in mlflow/protos/service.proto."""


def sniff(source: Source) -> bool:
    match = _PATH.match(source.name)
    if match is None or source.is_binary:
        return False
    kind, head = match["kind"], source.head
    if kind == "metrics" and match["name"]:
        lines = head.splitlines()[:5]
        return bool(lines) and all(_METRIC.match(line) for line in lines[: max(1, len(lines) - 1)])
    if kind == "params":
        return bool(match["name"]) and len(head) < 8192 and head.count(b"\n") <= 2
    return kind == "meta.yaml" and b"run_id:" in head and b"status:" in head


def read(source: Source) -> list[Run]:
    """One metric, one parameter or the status of a run; the assembly puts the files of a run together."""
    match = _PATH.match(source.name)
    if match is None:
        raise ValueError("it does not lie in an MLflow store")
    run, kind, name = match["run"], match["kind"], match["name"] or ""
    if kind == "params":
        where = Where("config", path=source.name, line=1, key=name)
        setting = Setting(name, source.text(8192).strip(), where)
        return [Run(run, FORMAT, {}, settings={name: setting}, files=(source.name,))]
    if kind == "meta.yaml":
        status = re.search(r"^status: *['\"]?(\w+)", source.text(65_536), re.MULTILINE)
        outcome = _STATUS.get(status.group(1), "unknown") if status else "unknown"
        return [Run(run, FORMAT, {}, outcome=outcome, files=(source.name,))]
    recorder = RunRecorder(source.name, FORMAT)
    for line in source.lines():
        parts = line.text.split(" ")
        value = number(parts[1]) if len(parts) > 1 else None
        step = number(parts[2]) if len(parts) > 2 else float(line.number - 1)
        if value is not None and step is not None:
            recorder.row((name,), (value,), step, line.number)
    return [replace(part, path=run) for part in recorder.finish()]
