"""Faults in spellings that no rule's own examples have, and healthy twins.

``spellings_*.txt`` hold whole scripts. A head ``### id`` is a fault, to be found on the line with ``# expect`` and
nowhere else; of a script under ``### healthy`` nothing is said.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainwreck.core.source import Source
from trainwreck.engine import check


def scripts() -> Iterator[Any]:
    for path in sorted(Path(__file__).parent.glob("spellings_*.txt")):
        parts = re.split(r"^### ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for number, part in enumerate(parts):
            head, _, code = part.partition("\n")
            yield pytest.param(head, code, id=f"{path.stem}-{number}-{head}")


@pytest.mark.parametrize(("head", "code"), list(scripts()))
def test_the_fault_is_found_on_its_line_and_nothing_else(head: str, code: str) -> None:
    data = code.encode()
    found = check([Source("train.py", lambda: io.BytesIO(data), data, len(data))]).findings
    marked = {line for line, text in enumerate(code.splitlines(), 1) if "# expect" in text}
    if head == "healthy":
        assert [(f.id, f.line) for f in found] == []
        return
    assert {(f.id, f.line) for f in found} == {(head, line) for line in marked}
