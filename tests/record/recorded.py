"""A script run under the recorder, in a fork of the tests' process."""

from __future__ import annotations

from pathlib import Path

from forked import recorded


def run(folder: Path, text: str) -> str:
    """Write ``text`` to ``folder``, record it to ``folder/rec``, and give what it printed."""
    printed = recorded(text, folder)
    assert "Traceback" not in printed, printed[-2000:]
    return printed


def lines(folder: Path) -> str:
    """What rank 0 recorded, as lines of JSON."""
    return (folder / "rec/rank0.jsonl").read_text()
