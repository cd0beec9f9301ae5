"""``trainwreck ARGUMENTS`` in a fork of the tests' process, where all is loaded already: a second less for each call.

A call has its own directory, streams, environment and exit code, as if it had been started by a shell."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path


def command(cwd: Path | None, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """What ``trainwreck ARGUMENTS`` in ``cwd`` prints for ``stdin``, and its exit code."""
    from trainwreck import cli

    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads that other tests have left: none of them is needed here
            child = os.fork()
        if not child:
            try:
                _become(cwd, given.fileno(), out.fileno(), err.fileno(), arguments)
                cli.main()
            except SystemExit as end:
                _leave(end.code if isinstance(end.code, int) else 0)
            except BaseException:
                os.write(2, traceback.format_exc().encode())
            _leave(1)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(["trainwreck", *arguments], code, out.read(), err.read())


def _become(cwd: Path | None, given: int, out: int, err: int, arguments: tuple[str, ...]) -> None:
    """Give this child the streams, directory and arguments of a command of its own."""
    for there, here in ((given, 0), (out, 1), (err, 2)):
        os.dup2(there, here)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))  # noqa: SIM115
    if cwd is not None:
        os.chdir(cwd)
    sys.argv = ["trainwreck", *arguments]
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    faulthandler.disable()  # it writes to the streams of the tests


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
