"""The parent process: start the script under the recorder, wait, and say what the recording shows. Imports no torch."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from trainwreck.core.errors import TrainwreckError

BOOTSTRAP = Path(__file__).parent / "inside" / "bootstrap"
MAX_SOURCES = 200
LAUNCHERS = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "deepspeed.launcher.runner",
)


def run(command: Sequence[str], folder: Path, *, quiet_stdout: bool = False) -> int:
    """Run ``python`` with ``command`` (a script or ``-m module``, and its arguments) under the recorder.

    Returns the program's own exit code, 128 + signal where a signal ended it. ``quiet_stdout`` joins its standard
    output to standard error, so that ours holds nothing but our answer. Raises TrainwreckError if there is no such
    script.
    """
    if not command:
        raise TrainwreckError("name a script, or -m MODULE")
    if command[0] != "-m" and not Path(command[0]).is_file():
        raise TrainwreckError(f"{command[0]}: no such script; check the spelling")
    environment = dict(os.environ)
    environment["TRAINWRECK_RECORD"] = str(folder.absolute())
    before = environment.get("PYTHONPATH", "")
    environment["TRAINWRECK_PYTHONPATH"] = before
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(BOOTSTRAP), before]))
    if command[0] == "-m" and len(command) > 1 and command[1] in LAUNCHERS:
        environment["TRAINWRECK_CHILDREN"] = "1"
    child = subprocess.Popen(
        [sys.executable, *command], env=environment, stdout=sys.stderr.fileno() if quiet_stdout else None
    )
    return _wait(child)


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Wait for the child; Ctrl-C reaches it by itself, other signals are passed on."""

    def forward(number: int, _: object) -> None:
        child.send_signal(number)

    previous = {s: signal.signal(s, forward) for s in (signal.SIGTERM, signal.SIGHUP)}
    previous[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


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
    if command[0] == "-m":
        return []
    script = Path(command[0])
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
