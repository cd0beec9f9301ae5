"""Whole scripts: each marked line is found by its rule (``# expect: id``), every unmarked line stays silent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainwreck.code.read import parse
from trainwreck.code.witness import witness
from trainwreck.core.program import Module, Program

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py.txt"))
MARK = re.compile(r"#.*?expect: ([\w, -]+)")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name.removesuffix(".py.txt"))
def test_marked_lines_are_found_and_no_other(path: Path) -> None:
    module = parse("train.py", path.read_text(encoding="utf-8"))
    assert isinstance(module, Module), module
    wanted = {
        (f"code-{name.strip()}", number)
        for number, line in enumerate(module.lines, 1)
        if (mark := MARK.search(line))
        for name in mark.group(1).split(",")
    }
    sightings = witness(Program({"train.py": module}))
    assert not sightings.broken
    assert {(e.sign, e.where.line) for e in sightings.evidence} == wanted


def test_there_are_scripts() -> None:
    assert any(p.name.startswith("good_") for p in SCRIPTS)
    assert any(p.name.startswith("bad_") for p in SCRIPTS)
