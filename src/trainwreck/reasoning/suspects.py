"""Theories that somebody put forward, judged by the same evidence. Authority is no evidence."""

from __future__ import annotations

from collections.abc import Sequence

from trainwreck.catalogue.load import Catalogue
from trainwreck.catalogue.search import Index, index
from trainwreck.core.results import Suspect, Verdict
from trainwreck.reasoning.diagnose import Diagnosis
from trainwreck.reasoning.weigh import overlap, reaches

SUPPORTED = 0.5
DISPLACED = 0.75
"""A suspect is refuted where another cause explains the same evidence with at least this confidence."""


def judge(texts: Sequence[str], diagnosis: Diagnosis, known: Catalogue) -> list[Suspect]:
    """One verdict a theory: supported, refuted by contrary or better explained evidence, or undecided."""
    if not texts:
        return []
    return [_judge(text, diagnosis, known, index(known)) for text in texts]


def _judge(text: str, diagnosis: Diagnosis, known: Catalogue, words: Index) -> Suspect:
    named = known.resolve(text)
    hits = words.search(text, limit=8)
    told = {c.id: c for c in diagnosis.causes}
    if named is None:
        near = [h for h in hits if hits and h.score >= 0.6 * hits[0].score]
        named = next((h.id for h in near if h.id in told), hits[0].id if hits else None)
    if named is None:
        return Suspect(text, None, "undecided")
    candidate = next((c for c in diagnosis.candidates if c.mode.id == named), None)
    cause = told.get(named)
    verdict: Verdict = "undecided"
    best = next((c for c in diagnosis.causes if c.role == "root"), None)
    if cause is not None and cause.role in ("root", "contributing") and cause.confidence >= SUPPORTED:
        return Suspect(text, named, "supported", tuple(cause.evidence[:4]))
    if best is not None and reaches(named, best.id, known) and candidate is not None:
        return Suspect(text, named, "undecided", tuple(candidate.evidence[:4]))
    if best is not None and best.confidence >= DISPLACED and best.id != named:
        winner = next(c for c in diagnosis.candidates if c.mode.id == best.id)
        if candidate is None or overlap(winner, candidate) > 0 or winner.conclusive:
            return Suspect(text, named, "refuted", tuple(best.evidence[:4]))
    if candidate is not None and candidate.against and candidate.score < 0:
        return Suspect(text, named, "refuted", tuple(candidate.against[:4]))
    return Suspect(text, named, verdict, tuple(candidate.evidence[:4]) if candidate else ())
