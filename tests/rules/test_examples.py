"""Every rule finds its own BAD code on the marked line and says nothing about its GOOD code.

Marks: ``# expect`` the line to be named; ``# fails`` the line where the rule's ERROR surfaces. Lines ``# %%`` part
the cells of a notebook. An example of several files has lines ``#--- path`` that begin each of them; what stands before
the first is left out.
"""

from __future__ import annotations

import pytest

from trainwreck.code.read import build, parse
from trainwreck.code.rule import Rule, rules
from trainwreck.code.witness import StaticSightings, witness
from trainwreck.core.failure import Failure, Frame
from trainwreck.core.program import Module, Program
from trainwreck.core.source import from_bytes

CASES = [pytest.param(rule, text, id=f"{rule.sign}-{n}") for rule in rules() for n, text in enumerate(rule.bad)]
HEALTHY = [pytest.param(rule, text, id=f"{rule.sign}-{n}") for rule in rules() for n, text in enumerate(rule.good)]


def files(text: str) -> dict[str, str]:
    parts = text.split("#--- ")[1:]
    return {name.strip(): body for name, _, body in (part.partition("\n") for part in parts)}


def seen(rule: Rule, text: str) -> StaticSightings:
    if "#--- " in text:
        return witness(build([from_bytes(name, body.encode()) for name, body in files(text).items()]))
    cells = [n for n, line in enumerate(text.split("\n"), 1) if line.startswith("# %%")]
    module = parse("train.py", text, cells or None)
    assert isinstance(module, Module), module
    failing = [n for n, line in enumerate(module.lines, 1) if "# fails" in line]
    failures = []
    if failing:
        kind, _, message = rule.error.partition(": ")
        frame = Frame("/home/somebody/train.py", failing[0], "?", module.lines[failing[0] - 1])
        failures = [Failure(kind, message, [frame])]
    return witness(Program({"train.py": module}), failures)


@pytest.mark.parametrize(("rule", "text"), CASES)
def test_bad_code_is_found_on_its_line(rule: Rule, text: str) -> None:
    wanted = [n for n, line in enumerate(text.split("\n"), 1) if "# expect" in line]
    sightings = seen(rule, text)
    assert not sightings.broken
    if "#--- " in text:
        marked = [
            (p, n) for p, body in files(text).items() for n, x in enumerate(body.split("\n"), 1) if "# expect" in x
        ]
        assert sorted((e.where.path, e.where.line) for e in sightings.evidence if e.sign == rule.sign) == sorted(marked)
        return
    starts = [n for n, line in enumerate(text.split("\n"), 1) if line.startswith("# %%")]
    found = [
        (e.where.line or 0) + (starts[e.where.cell - 1] - 1 if e.where.cell else 0)
        for e in sightings.evidence
        if e.sign == rule.sign
    ]
    if (not found and rule.find is None and rule.trace is None) or "# place" in text:
        where = sightings.place(rule.sign)
        found = [where.line if where else None]
    assert found == wanted


@pytest.mark.parametrize(("rule", "text"), HEALTHY)
def test_good_code_is_left_alone(rule: Rule, text: str) -> None:
    sightings = seen(rule, text)
    assert not sightings.broken
    assert [e.text for e in sightings.evidence if e.sign == rule.sign] == []


@pytest.mark.parametrize("rule", rules(), ids=lambda r: r.sign)
def test_rule_is_complete(rule: Rule) -> None:
    for section in ("What:", "Why it matters:", "When it is fine:"):
        assert section in rule.doc
    assert rule.find or rule.trace or rule.locate
    assert rule.bad
    assert rule.good
    assert (rule.trace is None) == (not rule.surfaces) or rule.locate
