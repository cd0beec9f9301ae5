"""What a catalogue entry holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainwreck.core.evidence import Severity
from trainwreck.core.row import Row


class SignWeight(Row):
    """How a sign speaks for (positive) or against (negative) a failure mode, in natural-log likelihood units.

    ``absent`` (zero or negative) is added instead where the sign could have been seen and was not.
    ``conclusive``: the sign proves the mode. ``when``: ids of signs (parted by blanks); this one counts only where one
    of them is seen too: words that decide between explanations of a message say nothing without the message.
    """

    sign: str
    weight: float
    conclusive: bool = False
    absent: float = 0.0
    when: str = ""


class Sign(Row):
    """Something that a witness can see. ``needs`` are the roles or artefacts without which it can't be seen;
    ``symptom`` says whether the sighting alone is worth telling."""

    id: str
    meaning: str
    family: str
    unit: str = ""
    needs: Sequence[str] = ()
    symptom: bool = True


class Mode(Row):
    """One failure mode. See docs/catalogue.md for the meaning of each field of its file."""

    id: str
    title: str
    family: str
    severity: Severity
    mechanism: str
    signs: Sequence[SignWeight]
    prior: float
    group: str | None
    aliases: Sequence[str]
    phrases: Sequence[str]
    mistaken_for: Mapping[str, str]
    leads_to: Sequence[str]
    fixes: Sequence[Mapping[str, str]]
    if_not: str
    experiment: str
    references: Sequence[Mapping[str, str]]
    cases: Sequence[str]
    maturity: str
    restates: bool
    fallback: bool

    def weight(self, sign: str) -> SignWeight | None:
        return next((s for s in self.signs if s.sign == sign), None)


def sign_from(entry: Mapping[str, Any]) -> Sign:
    return Sign(
        id=entry["id"],
        meaning=entry["meaning"],
        family=entry["family"],
        unit=entry.get("unit", ""),
        needs=tuple(entry.get("needs", ())),
        symptom=entry.get("symptom", True),
    )


def mode_from(entry: Mapping[str, Any]) -> Mode:
    return Mode(
        id=entry["id"],
        title=entry["title"],
        family=entry["family"],
        severity=entry.get("severity", "critical"),
        mechanism=entry["mechanism"],
        signs=tuple(
            SignWeight(
                sign=s["sign"],
                weight=float(s["weight"]),
                conclusive=s.get("conclusive", False),
                absent=float(s.get("absent", 0.0)),
                when=s.get("when", ""),
            )
            for s in entry.get("signs", ())
        ),
        prior=float(entry.get("prior", DEFAULT_PRIOR)),
        group=entry.get("group"),
        aliases=tuple(entry.get("aliases", ())),
        phrases=tuple(entry.get("phrases", ())),
        mistaken_for={m["id"]: m["tell_apart"] for m in entry.get("mistaken_for", ())},
        leads_to=tuple(entry.get("leads_to", ())),
        fixes=tuple(entry.get("fixes", ())),
        if_not=entry.get("if_not", ""),
        experiment=entry.get("experiment", ""),
        references=tuple(entry.get("references", ())),
        cases=tuple(entry.get("cases", ())),
        maturity=entry.get("maturity", "stable"),
        restates=entry.get("restates", False),
        fallback=entry.get("fallback", False),
    )


DEFAULT_PRIOR = -3.0
"""Log odds of a mode before anything is seen: about one in twenty, a judgement; calibration corrects for it."""
