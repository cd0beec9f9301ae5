"""What the verb ``run`` does: record, then diagnose the recording together with the sources."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
    options: Mapping[str, Any] | None = None,
) -> int:
    """Run ``command`` under the recorder and report; the exit code. ``options`` are those of the recorder."""
    command = launch.words(command)
    if not command:
        raise TrainwreckError("name a script, or -m MODULE")
    folder = Path(record_to) if record_to else launch.default_folder(launch.launched(command) or command[1])
    code = launch.run(command, folder, quiet_stdout=form in ("json", "jsonl"), options=options)
    if os.environ.get("RANK", "0") != "0":
        return code  # under a launcher rank 0 speaks for all
    if not recorded(folder):
        why = f"the program took no step of a torch optimizer, or {folder} could not be written"
        print(f"trainwreck: nothing was recorded ({why}); only the source was looked at", file=sys.stderr)
    try:
        result = diagnosis(command, folder)
    except TrainwreckError as problem:
        print(f"trainwreck: {problem}", file=sys.stderr)
        return code
    except Exception as problem:  # a fault of ours must not change the program's exit code
        print(f"trainwreck: the diagnosis failed ({type(problem).__name__}: {problem})", file=sys.stderr)
        return code
    if form in ("json", "jsonl") or output:
        deliver(result, form, output, color)
    else:
        with contextlib.redirect_stdout(sys.stderr):
            deliver(result, form or "full", None, color)
    if recorded(folder):
        print(f"recording: {folder}  (again: trainwreck diagnose {folder} {_code(command)})", file=sys.stderr)
    if code == 0 and fail_on not in (None, "never"):
        worst = result.worst()
        if worst is not None and SEVERITIES.index(worst) >= SEVERITIES.index(fail_on):
            return 1
    return code


def _code(command: Sequence[str]) -> str:
    script = launch.launched(command)
    return f"--code {script}" if script else ""


def diagnosis(command: Sequence[str], folder: Path) -> Result:
    """What the recording and the sources show together; the sources alone where nothing was recorded."""
    code = launch.sources(command)
    if recorded(folder):
        return engine.diagnose([folder], code=code)
    if code:
        return engine.diagnose(code)
    raise TrainwreckError("nothing was recorded: the program took no optimizer step and left no source to read")


def recorded(folder: Path) -> bool:
    """Whether anything stands in ``folder``."""
    return folder.is_dir() and any(p.stat().st_size for p in folder.iterdir())
