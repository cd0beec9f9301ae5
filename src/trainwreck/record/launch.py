"""The parent process: start the script under the recorder, wait, and say what the recording shows. Imports no torch."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainwreck.core.errors import TrainwreckError

BOOTSTRAP = Path(__file__).parent / "inside" / "bootstrap"
MAX_SOURCES = 200
LAUNCHERS = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli",
    "deepspeed.launcher.runner",
)
COMMANDS = {
    "torchrun": ("-m", "torch.distributed.run"),
    "accelerate": ("-m", "accelerate.commands.accelerate_cli"),
    "deepspeed": ("-m", "deepspeed.launcher.runner"),
    "python": (),
    "python3": (),
}
"""Commands that people put before a script, and what Python is given instead of them."""


def words(command: Sequence[str]) -> tuple[str, ...]:
    """``command`` with a launcher's name (``torchrun``) as the module that it stands for, unless a file has it."""
    if command and command[0] in COMMANDS and not Path(command[0]).is_file():
        return (*COMMANDS[command[0]], *command[1:])
    return tuple(command)


def launched(command: Sequence[str]) -> str | None:
    """The script that ``command`` comes to: the script itself, or the first one among a launcher's arguments."""
    if command[0] != "-m":
        return command[0]
    if len(command) > 1 and command[1] in LAUNCHERS:
        return next((word for word in command[2:] if word.endswith(".py") and Path(word).is_file()), None)
    return None


def run(
    command: Sequence[str],
    folder: Path,
    *,
    quiet_stdout: bool = False,
    options: Mapping[str, Any] | None = None,
) -> int:
    """Run ``python`` with ``command`` (a script or ``-m module``, and its arguments) under the recorder.

    ``options`` are those of the recorder (docs/recorder.md). Returns the program's own exit code, 128 + signal where a
    signal ended it. ``quiet_stdout`` joins its standard output to standard error, so that ours holds nothing but our
    answer. Raises TrainwreckError if there is no such script.
    """
    if not command:
        raise TrainwreckError("name a script, or -m MODULE")
    if command[0] != "-m" and not Path(command[0]).is_file():
        raise TrainwreckError(f"{command[0]}: no such script; check the spelling")
    environment = dict(os.environ)
    environment["TRAINWRECK_RECORD"] = str(folder.absolute())
    if options:
        environment["TRAINWRECK_OPTIONS"] = json.dumps(dict(options))
    before = environment.get("PYTHONPATH", "")
    environment["TRAINWRECK_PYTHONPATH"] = before
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(BOOTSTRAP), before]))
    if command[0] == "-m" and len(command) > 1 and command[1] in LAUNCHERS:
        environment["TRAINWRECK_CHILDREN"] = "1"
    child = subprocess.Popen(
        [sys.executable, *command], env=environment, stdout=sys.stderr.fileno() if quiet_stdout else None
    )
    code = _wait(child)
    if "TRAINWRECK_CHILDREN" not in environment:
        _note_end(folder, code)
    return code if code >= 0 else 128 - code


def _note_end(folder: Path, code: int) -> None:
    """Write how the process ended (its exit code, or minus the signal) behind its events, where it has left any."""
    path = folder / "rank0.jsonl"
    if not path.is_file() or (not code and b'"ended"' in path.read_bytes()[-4096:]):
        return
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    text = f"the process ended with exit code {code}" if code >= 0 else f"the process was ended by {name}"
    told = (folder / "traceback-rank0.txt").is_file()
    event = {"event": "exit", "text": text, "step": None, "code": code if code >= 0 else 128 - code, "traceback": told}
    event |= {"signal": name} if code < 0 else {}
    with contextlib.suppress(OSError), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Wait for the child; Ctrl-C reaches it by itself, other signals are passed on. Its code, or minus the signal."""

    def forward(number: int, _: object) -> None:
        child.send_signal(number)

    previous = {s: signal.signal(s, forward) for s in (signal.SIGTERM, signal.SIGHUP)}
    previous[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return code


def default_folder(script: str) -> Path:
    """``.trainwreck/runs/<date>-<script>``, numbered if it exists."""
    base = Path(".trainwreck/runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{Path(script).stem or 'run'}"
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    return folder


def sources(command: Sequence[str]) -> list[str]:
    """The script itself, and the files beside it that it imports, directly or through one another. Nothing is run."""
    name = launched(command)
    if name is None:
        return []
    script = Path(name)
    found, todo = [script], [script]
    while todo and len(found) < MAX_SOURCES:
        for name in _imported(todo.pop()):
            parts = name.split(".")
            for path in (
                script.parent.joinpath(*parts).with_suffix(".py"),
                script.parent.joinpath(*parts, "__init__.py"),
            ):
                if path.is_file() and path not in found:
                    found.append(path)
                    todo.append(path)
    return [str(path) for path in found]


def _imported(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
    return names
