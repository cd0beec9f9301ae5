"""One fault in many spellings: each edit of a healthy script is found at its place, each harmless one stays silent."""

from __future__ import annotations

import pytest

from rules.spelled import FAULTS, HEALTHY, HERE, Edits, edited
from trainwreck.code.read import parse
from trainwreck.code.witness import witness
from trainwreck.core.evidence import Evidence
from trainwreck.core.program import Module, Program

NEAR = 2
"""Lines between a finding and the edit; an omission has no line of its own."""


def seen(text: str) -> list[Evidence]:
    module = parse("train.py", text)
    assert isinstance(module, Module), module
    sightings = witness(Program({"train.py": module}))
    assert not sightings.broken
    return list(sightings.evidence)


@pytest.mark.parametrize("script", sorted(p.name.removesuffix(".py.txt") for p in HERE.glob("*.py.txt")))
def test_the_scripts_themselves_are_healthy(script: str) -> None:
    assert seen(edited(script, ())[0]) == []


@pytest.mark.parametrize(
    ("script", "mode", "edits"), [pytest.param(*f, id=f"{f[1]}-{n}-{f[0]}") for n, f in enumerate(FAULTS)]
)
def test_a_fault_is_found_where_it_was_made(script: str, mode: str, edits: Edits) -> None:
    text, lines = edited(script, edits)
    found = [(e.sign, e.where.line) for e in seen(text)]
    assert any(s == f"code-{mode}" and n and any(abs(n - at) <= NEAR for at in lines) for s, n in found), found


@pytest.mark.parametrize(("script", "edits"), [pytest.param(*h, id=f"{n}-{h[0]}") for n, h in enumerate(HEALTHY)])
def test_other_ways_of_doing_it_right_stay_silent(script: str, edits: Edits) -> None:
    assert [(e.sign, e.where.line) for e in seen(edited(script, edits)[0])] == []
