"""Pins that cannot be installed together.

What: the exact pin of one library lies outside what another pinned library demands.
Why it matters: the installer refuses, or one of the two breaks at import.
When it is fine: where a pin is a range that leaves room, and for libraries whose demands are not in the
tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue import specifiers
from trainwreck.catalogue.releases import TABLES, conflicts, table
from trainwreck.code.project import Project
from trainwreck.code.rule import sign_of
from trainwreck.code.targets import Pin, pins
from trainwreck.code.triggers import BESIDE
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.fix import Fix

WORDS = (BESIDE,)
BAD = """
# requirements.txt beside it (see tests/rules/versions): transformers==4.57.6 and tokenizers==0.15.0
import transformers
"""
GOOD = """
import transformers
"""


OTHERS = (
    "torch",
    "numpy",
    "tokenizers",
    "huggingface-hub",
    "torchvision",
    "torchaudio",
    *dict.fromkeys(TABLES.values()),
)


def find(project: Project) -> Iterator[Evidence]:
    """Among the pins of one file: what release A demands of B, against the version of B that is pinned."""
    by_file: dict[str, dict[str, Pin]] = {}
    for pin in pins(project):
        by_file.setdefault(pin.path, {}).setdefault(pin.package, pin)
    for here in by_file.values():
        for pin in here.values():
            yield from _quarrels(pin, here)


def _quarrels(pin: Pin, here: dict[str, Pin]) -> Iterator[Evidence]:
    version = specifiers.exact(pin.specifier)
    home = table(pin.package) if version is not None and pin.package in TABLES.values() and len(here) > 1 else None
    if home is None or version is None:
        return
    low, high = home.bracket(version)
    if low < 0 or low != high:
        return
    for other in OTHERS:
        rival = here.get(other)
        wanted = specifiers.exact(rival.specifier) if rival is not None else None
        if rival is None or wanted is None or rival is pin:
            continue
        for demand in conflicts(home, low, other):
            if not specifiers.allows(demand, wanted):
                text = f"{pin.package} {home.releases[low]} needs {other}{demand}, but {rival.text} is asked for"
                where = Where("config", path=rival.path, line=rival.line, column=1, key=other)
                proof = {"proof": [[pin.path, pin.line, pin.text]]}
                yield Evidence(sign_of(__name__), "direct", text, where, proof, fix=Fix(f"choose {other}{demand}"))
