"""What the verb ``run`` does: record, then diagnose the recording together with the sources."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from trainwreck import engine
from trainwreck.core.errors import TrainwreckError
from trainwreck.core.evidence import SEVERITIES
from trainwreck.core.results import Result
from trainwreck.record import launch

Deliver = Callable[[Result, str | None, str | None, str], None]


def run(
    command: Sequence[str],
    record_to: str | None,
    form: str | None,
    output: str | None,
    color: str,
    fail_on: str | None,
    deliver: Deliver,
) -> int:
    """Run ``command`` under the recorder and report; the exit code."""
    folder = Path(record_to) if record_to else launch.default_folder(command[-1] if command[0] == "-m" else command[0])
    code = launch.run(command, folder, quiet_stdout=form in ("json", "jsonl"))
    try:
        result = diagnosis(command, folder)
    except TrainwreckError as problem:
        print(f"trainwreck: {problem}", file=sys.stderr)
        return code
    if form in ("json", "jsonl") or output:
        deliver(result, form, output, color)
    else:
        with contextlib.redirect_stdout(sys.stderr):
            deliver(result, form or "full", None, color)
    if folder.is_dir():
        print(f"recording: {folder}  (again: trainwreck diagnose {folder} --code {command[0]})", file=sys.stderr)
    if code == 0 and fail_on not in (None, "never"):
        worst = result.worst()
        if worst is not None and SEVERITIES.index(worst) >= SEVERITIES.index(fail_on):
            return 1
    return code


def diagnosis(command: Sequence[str], folder: Path) -> Result:
    """What the recording and the sources show together; the sources alone where nothing was recorded."""
    code = launch.sources(command)
    if folder.is_dir() and any(p.stat().st_size for p in folder.iterdir()):
        return engine.diagnose([folder], code=code)
    if code:
        return engine.diagnose(code)
    raise TrainwreckError("nothing was recorded: the program took no optimizer step and left no source to read")
