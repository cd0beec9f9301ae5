"""How a rule says what it saw in a configuration, a script or a command."""

from __future__ import annotations

from collections.abc import Iterable

from trainwreck.code.rule import Proven, place_of, sign_of
from trainwreck.code.settings.tree import Place, Setting
from trainwreck.core.evidence import Evidence, EvidenceClass, Severity, Where
from trainwreck.core.fix import Edit, Fix

Link = Setting | Place | tuple[str, int, str]


def told(
    rule: str,
    where: Setting | Place,
    text: str,
    *,
    proof: Iterable[Link] = (),
    fix: Fix | str | None = None,
    severity: Severity | None = None,
    key: str | None = None,
    on_key: bool = False,
    cls: EvidenceClass = "direct",
) -> Evidence:
    """A sighting at a setting (its value, or its key) or at a place. ``proof`` are the other settings that show it."""
    place = where if isinstance(where, Place) else where.key_place if on_key else where.place
    name = key or (where.name if isinstance(where, Setting) else None)
    python = isinstance(where, Setting) and where.language == "python"
    kind = "code" if python or place.path.endswith((".py", ".ipynb")) else "config"
    chain = [_link(item) for item in proof]
    own = of_place(place, "")
    shown = list(dict.fromkeys(place_of(*link) for link in chain if (*link[:2], *link[3:]) != (*own[:2], *own[3:])))
    sentence = text + (f" (see {', '.join(shown[:4])})" if shown else "")
    spot = Where("code" if kind == "code" else "config", path=place.path, line=place.line, column=place.column,
                 key=name, cell=place.cell)  # fmt: skip
    value = {"proof": [list(link) for link in chain]} if chain else None
    return Evidence(
        sign_of(rule),
        cls,
        sentence,
        spot,
        value,
        until=(place.line, place.end_column),
        fix=Fix(fix) if isinstance(fix, str) else fix,
        severity=severity,
    )


def _link(item: Link) -> Proven:
    if isinstance(item, Place):
        return of_place(item, "")
    return of_place(item.place, item.said) if isinstance(item, Setting) else item


def of_place(place: Place, text: str) -> Proven:
    """A line of a proof; in a notebook with its cell."""
    return (place.path, place.line, text) if place.cell is None else (place.path, place.line, text, place.cell)


def replaced(lines: str, place: Place, new: str, words: str, *, safe: bool = False) -> Fix:
    """The text at ``place`` (one line of the file whose text is ``lines``) becomes ``new``."""
    rows = lines.split("\n")
    if place.cell is not None or not 0 < place.line <= len(rows):
        return Fix(words)
    row = rows[place.line - 1].rstrip("\r")
    text = row[: place.column - 1] + new + row[place.end_column - 1 :]
    return Fix(words, (Edit(place.path, place.line, place.line, text, place.cell),), safe)
