"""Faults of loops, schedules, starts, checkpoints and ranks in spellings that no rule shows, and healthy twins.

``spellings_jobs.txt`` holds whole scripts. A head ``### id`` is a fault, to be found on the line with ``# expect`` and
nowhere else; of a script under ``### healthy`` nothing is said.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from trainwreck.core.source import Source
from trainwreck.engine import check

TEXT = (Path(__file__).parent / "spellings_jobs.txt").read_text(encoding="utf-8")
SCRIPTS = [tuple(part.partition("\n")[::2]) for part in re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]]


@pytest.mark.parametrize("number", range(len(SCRIPTS)), ids=[f"{n}-{head}" for n, (head, _) in enumerate(SCRIPTS)])
def test_the_fault_is_found_on_its_line_and_nothing_else(number: int) -> None:
    head, code = SCRIPTS[number]
    data = code.encode()
    found = check([Source("train.py", lambda: io.BytesIO(data), data, len(data))]).findings
    marked = {line for line, text in enumerate(code.splitlines(), 1) if "# expect" in text}
    if head == "healthy":
        assert [(f.id, f.line) for f in found] == []
        return
    assert {(f.id, f.line) for f in found} == {(head, line) for line in marked}
