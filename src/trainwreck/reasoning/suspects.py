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

CERTAIN, OPEN = 0.9, 0.15
"""A rival that is told with at least OPEN stays open while the best cause is less than CERTAIN."""
NEAR, NEAR_OF_FEW, FEW = 0.6, 0.95, 4
"""A theory means the told cause that it fits nearly as well as the best entry; one of fewer than FEW words ("the
learning rate") fits so many that only the best counts."""
NAMED = 0.4
"""Share of a theory's words that an entry must hold before the theory can be refuted as that entry."""


def judge(texts: Sequence[str], diagnosis: Diagnosis, known: Catalogue) -> list[Suspect]:
    """One verdict a theory: supported, refuted by contrary or better explained evidence, or undecided."""
    if not texts:
        return []
    return [_judge(text, diagnosis, known, index(known)) for text in texts]


def _judge(text: str, diagnosis: Diagnosis, known: Catalogue, words: Index) -> Suspect:
    named = known.resolve(text)
    vague = False
    hits = words.search(text, limit=8)
    told = {c.id: c for c in diagnosis.causes}
    if named is None:
        near = [h for h in hits if h.score >= (NEAR if len(text.split()) >= FEW else NEAR_OF_FEW) * hits[0].score]
        chosen = next((h for h in near if h.id in told), hits[0] if hits else None)
        named = chosen.id if chosen is not None else None
        vague = chosen is not None and chosen.share < NAMED
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
    if vague and cause is None:
        return Suspect(text, named, "undecided")
    if cause is not None and best is not None and best.confidence < CERTAIN and cause.confidence >= OPEN:
        return Suspect(text, named, "undecided", tuple(cause.evidence[:4]))
    if best is not None and best.confidence >= DISPLACED and best.id != named:
        winner = next(c for c in diagnosis.candidates if c.mode.id == best.id)
        if candidate is None or overlap(winner, candidate) > 0 or winner.conclusive:
            return Suspect(text, named, "refuted", tuple(best.evidence[:4]))
    if candidate is not None and candidate.against and candidate.score < 0:
        return Suspect(text, named, "refuted", tuple(candidate.against[:4]))
    return Suspect(text, named, verdict, tuple(candidate.evidence[:4]) if candidate else ())
