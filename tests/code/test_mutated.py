"""Programs (``mutated/*.txt``) with marked variants: the program is silent, each fault is found within two lines.

A line ends in ``#!F1 rule-id: replacement`` for a fault, ``#!H1: replacement`` for another correct spelling; ``-`` is
for a line that is gone. The same name at several lines belongs together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainwreck.code.read import parse
from trainwreck.code.witness import witness
from trainwreck.core.program import Module, Program

MARK = re.compile(r"\s*#!([FH]\w+)\s*([\w-]*):\s?")
FILES = sorted((Path(__file__).parent / "mutated").glob("*.txt"))


def variants() -> Iterator[tuple[str, str, str, list[int]]]:
    """(name, program, rule or nothing, changed lines)."""
    for path in FILES:
        base: list[str] = []
        edits: dict[str, tuple[list[str], dict[int, str]]] = {}
        for line in path.read_text(encoding="utf-8").split("\n"):
            parts = MARK.split(line)
            for name, rule, new in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
                rules, places = edits.setdefault(name, ([], {}))
                rules += [rule] if rule else []
                places[len(base)] = new.strip()
            base.append(parts[0])
        yield path.stem, "\n".join(base), "", []
        for name, (rules, places) in edits.items():
            text, changed = _edited(base, places)
            yield f"{path.stem}-{name}", text, rules[0] if rules else "", changed


def _edited(base: list[str], places: dict[int, str]) -> tuple[str, list[int]]:
    lines: list[str] = []
    changed: list[int] = []
    for number, line in enumerate(base):
        if places.get(number) != "-":
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(indent + places[number] if number in places else line)
        if number in places:
            changed.append(len(lines))
    return "\n".join(lines), changed


@pytest.mark.parametrize(("text", "rule", "changed"), [pytest.param(*v[1:], id=v[0]) for v in variants()])
def test_mutated(text: str, rule: str, changed: list[int]) -> None:
    module = parse("train.py", text)
    assert isinstance(module, Module), module
    sightings = witness(Program({"train.py": module}))
    assert not sightings.broken
    loud = [(e.sign, e.where.line) for e in sightings.evidence if e.cls == "direct"]
    if not rule:
        assert not [s for s in loud if s[0] in RULES]
    else:
        assert any(sign == f"code-{rule}" and line and min(abs(line - c) for c in changed) <= 3 for sign, line in loud)


RULES = {f"code-{v[2]}" for v in variants() if v[2]}
"""A correct program is found by none of the rules that these files are about."""
