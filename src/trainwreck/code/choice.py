"""The rules that can see anything in a program at all: the others are not even loaded."""

from __future__ import annotations

import contextlib
import json
import os
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from trainwreck.catalogue.compile import stamp
from trainwreck.catalogue.load import cache_directory
from trainwreck.code.project import Project
from trainwreck.code.rule import Rule, rule, rules, sign_of
from trainwreck.code.triggers import BESIDE, index

CODE = Path(__file__).parent
BUILT = CODE / "rules.json"
"""The index that the build made. A checkout makes its own and keeps it in the user's cache."""
LARGE = 400_000
"""Characters of a program above which nearly every word stands somewhere; looking for them costs more than it saves."""


def possible(project: Project, *, tracing: bool = False) -> Sequence[Rule]:
    """The rules with a ``find`` that may see something in ``project``, in the order of their names.

    ``tracing``: and those that follow a failure back to where it was made.
    """
    texts = [walked.top.module.text for walked in project.walked.values()]
    if sum(map(len, texts)) > LARGE:
        return [each for each in rules() if each.find is not None or (tracing and each.trace is not None)]
    text = "\n".join(texts)
    if not text.isascii():
        text += unicodedata.normalize("NFKC", text)  # as Python reads names
    if project.program.others or any(walked.top.module.cells for walked in project.walked.values()):
        text += BESIDE
    package = f"{__package__}.rules."
    rows = _index().items()
    wanted = [n for n, (finds, words, traces) in rows if (finds and _fits(words, text)) or (tracing and traces)]
    return [rule(package + name) for name in sorted(wanted)]


def of_sign(sign: str) -> Sequence[Rule]:
    """The rules that emit ``sign``, in the order of their names."""
    package = f"{__package__}.rules."
    return [rule(package + name) for name in sorted(_index()) if sign_of(package + name) == sign]


def _fits(words: Sequence[str] | None, text: str) -> bool:
    return words is None or any(word in text for word in words)


@cache
def _index() -> Mapping[str, Any]:
    """For each rule, by family and name: what ``triggers.index`` says of it."""
    if BUILT.is_file():
        return _read(BUILT)
    kept = cache_directory() / f"rules-{stamp([CODE], ('.py',))[:24]}.json"
    with contextlib.suppress(OSError, ValueError):
        return _read(kept)
    import tempfile  # an installed index is never written

    table = index(CODE)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=kept.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(table, stream)
        os.replace(name, kept)
    return table


def _read(path: Path) -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(path.read_bytes())
    return table
