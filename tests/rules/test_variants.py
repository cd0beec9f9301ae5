"""Variants of one program (``variants/RULE.txt``): lines marked ``# expect`` are found by that rule, no others by any.

A file is a program with a line ``@@``, and after it the variants of that line, each under a line of ``====``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trainwreck.code.read import parse
from trainwreck.code.witness import witness
from trainwreck.core.program import Module, Program

FILES = sorted((Path(__file__).parent / "variants").glob("*.txt"))


def variants() -> Iterator[tuple[str, str]]:
    for path in FILES:
        base, *cases = path.read_text(encoding="utf-8").split("\n====\n")
        for case in cases:
            assert base.count("@@") == 1, path
            yield path.stem.partition(".")[0], base.replace("@@", case.strip("\n"))


@pytest.mark.parametrize(("rule", "text"), [pytest.param(*v, id=f"{v[0]}-{n}") for n, v in enumerate(variants())])
def test_variant(rule: str, text: str) -> None:
    module = parse("train.py", text)
    assert isinstance(module, Module), module
    wanted = {(f"code-{rule}", n) for n, line in enumerate(module.lines, 1) if "# expect" in line}
    sightings = witness(Program({"train.py": module}))
    assert not sightings.broken
    # a program for many variants holds layers that one of them does not use
    unused = [e for e in sightings.evidence if e.sign == "code-frozen-parameters" and "nothing ever calls" in e.text]
    found = {(e.sign, e.where.line) for e in sightings.evidence if rule == "frozen-parameters" or e not in unused}
    assert found == wanted
