"""Twelve scripts of our own in the style of tutorials of 2020 to 2024: what today's releases no longer have is found.

``# gone`` marks lines with something that transformers 5.24, trl 1.16, datasets 5.2, Lightning 2.6, torch 2.13 or their
companions refuse, ignore or warn about (checked against the installed packages where these were there).
"""

from __future__ import annotations

from pathlib import Path

from trainwreck.code import build, witness
from trainwreck.core.source import from_bytes

OLD = sorted((Path(__file__).parent / "old").glob("*.py.txt"))
KNOWN_MISSES = 6
"""Overridden private methods, attributes of trainers, methods of what load_dataset returns, inner functions."""


def test_what_is_gone_is_found() -> None:
    marked: set[tuple[str, int]] = set()
    found: set[tuple[str, int]] = set()
    for file in OLD:
        text = file.read_text(encoding="utf-8")
        marked |= {(file.name, n) for n, row in enumerate(text.splitlines(), 1) if "# gone" in row}
        evidence = witness(build([from_bytes(file.name.removesuffix(".txt"), text.encode())])).evidence
        found |= {(file.name, e.where.line or 0) for e in evidence}
    missed = sorted(marked - found)
    assert len(OLD) == 12
    assert len(marked) == 134
    assert len(missed) <= KNOWN_MISSES, missed
