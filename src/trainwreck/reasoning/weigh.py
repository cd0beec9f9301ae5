"""Weigh every failure mode against all the evidence.

The model is a naive-Bayes log odds per mode, tamed in three ways: several signs of one family count less and less (they
are rarely independent), a sign that could have been seen and was not counts against, and modes that lean on the same
sightings compete for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainwreck.catalogue.load import CODE_PREFIX, Catalogue
from trainwreck.catalogue.model import Mode
from trainwreck.core.evidence import Evidence, EvidenceClass

CONCLUSIVE_BONUS = 5.0
"""Log odds that a proving sign adds to its own weight: enough to beat any sum of circumstantial signs (a judgement)."""
DAMPING = (1.0, 0.6, 0.35, 0.2)
"""Weight of the first, second, third, … positive sign of one family; a judgement, checked by calibration."""
SUSPICION: Mapping[EvidenceClass, float] = {"direct": 0.85, "circumstantial": 0.45, "inferred": 0.0}
"""How much static evidence counts while no sign of the run speaks for the same mode (DESIGN: reduced weight). What the
code proves (direct) is a fault whether the curves show it or not; a suspicion is not, and what is only possible
(inferred) counts where a sign of the run agrees."""
EXPLAINED = 0.12
"""Probability of any other mode from which a fallback ("nothing known explains it") is not said."""
LIVE_PREFIX = "live-"
"""Signs that the flight recorder saw in the process itself."""
AT_WORK = 1.5
"""Log odds for a fault of a line at which a recorder saw something go wrong, under whatever name (a judgement)."""
ONE_REPORT = 0.6
"""Overlap of modes that the words of one short description speak for: people describe one failure at a time."""
EXPLAINS = -1.0
"""Log odds from which a mode explains a message well enough to come before one that only restates it."""
YIELDING = 0.5
"""By how much the restating one then comes after it, in log odds."""
TELLING_WEIGHT = 0.6
"""A fainter resemblance moves the odds but is no evidence worth telling."""
CLASS_FACTOR: Mapping[EvidenceClass, float] = {"direct": 1.0, "circumstantial": 0.85, "inferred": 0.6}


@dataclass
class Candidate:
    """A mode under consideration: its log odds and the sightings on either side.

    ``report`` is the short description that all its evidence comes from, if it does.
    """

    mode: Mode
    score: float
    evidence: list[Evidence] = field(default_factory=list)
    against: list[Evidence] = field(default_factory=list)
    conclusive: bool = False
    probability: float = 0.0
    confidence: float = 0.0
    strengths: dict[str, float] = field(default_factory=dict)
    at_work: bool = False
    """Whether a recorder saw something go wrong at the very line that the code proves it of."""
    report: str | None = None

    @property
    def cls(self) -> EvidenceClass:
        """The best class among the evidence that speaks for it."""
        classes = {e.cls for e in self.evidence}
        return "direct" if "direct" in classes else "circumstantial" if "circumstantial" in classes else "inferred"

    @property
    def from_run(self) -> bool:
        """True if something other than the static side speaks for it."""
        return self.at_work or any(not e.sign.startswith(CODE_PREFIX) for e in self.evidence)


def weigh(
    evidence: Sequence[Evidence],
    known: Catalogue,
    observed: frozenset[str],
    *,
    static_only: bool,
    resembling: Mapping[str, tuple[float, Evidence]] | None = None,
    reports: frozenset[str] = frozenset(),
) -> list[Candidate]:
    """All modes with something to say for them, most likely first, with probabilities after competition.

    ``observed`` are the roles and artefacts that were there to be seen; without them nothing counts as absent.
    ``static_only``: in ``check`` static evidence has full weight. ``resembling``: by mode, the weight and evidence of a
    description that resembles it. ``reports``: names of short descriptions; each tells of one failure.
    """
    extra = resembling or {}
    by_sign: dict[str, list[Evidence]] = {}
    for item in evidence:
        by_sign.setdefault(item.sign, []).append(item)
    names = sorted({name for sign in by_sign for name in known.modes_by_sign.get(sign, ())})
    names += [n for s in by_sign if (n := s.removeprefix(CODE_PREFIX)) != s and known.mode(n) and n not in names]
    names += [n for n in sorted(extra) if n not in names]
    candidates = []
    at_work = _lines_at_work(evidence)
    for name in names:
        mode = known.mode(name)
        if mode is not None:
            candidate = _score(mode, by_sign, known, observed, at_work, static_only=static_only)
            if name in extra:
                weight, item = extra[name]
                candidate.score += weight
                if weight >= TELLING_WEIGHT:
                    candidate.evidence.append(item)
                    candidate.strengths[item.sign] = weight
            if candidate.evidence:
                places = {e.where.path for e in candidate.evidence}
                candidate.report = next(iter(places)) if len(places) == 1 and places <= reports else None
                candidates.append(candidate)
    _support_chains(candidates, known)
    _yield(candidates)
    _compete(candidates, known)
    explained = any(c.probability >= EXPLAINED and c.from_run and not c.mode.fallback for c in candidates)
    told = [c for c in candidates if not (c.mode.fallback and explained)]
    return sorted(told, key=lambda c: (-c.probability, -c.score, c.mode.id))


def _lines_at_work(evidence: Sequence[Evidence]) -> frozenset[tuple[str, int]]:
    """Lines of the program at which a recorder saw something go wrong."""
    seen = [e.where for e in evidence if e.sign.startswith(LIVE_PREFIX) and e.where.kind == "code"]
    return frozenset((w.path, w.line) for w in seen if w.path and w.line)


def _score(
    mode: Mode,
    by_sign: Mapping[str, list[Evidence]],
    known: Catalogue,
    observed: frozenset[str],
    at_work: frozenset[tuple[str, int]] = frozenset(),
    *,
    static_only: bool,
) -> Candidate:
    candidate = Candidate(mode, mode.prior)
    positive: dict[str, list[float]] = {}
    own = CODE_PREFIX + mode.id
    entries = list(mode.signs)
    weights = {e.sign: (e.weight, e.conclusive, e.absent) for e in entries}
    beside = {e.sign: e.when.split() for e in entries if e.when}
    if own in by_sign and own not in weights:
        weights[own] = (4.0, False, 0.0)
    agrees = any(w > 0 and sign in by_sign and not sign.startswith(CODE_PREFIX) for sign, (w, _, _) in weights.items())
    # What the code proves of a line, and the run shows there in its own words, is one fault.
    proven = [e for e in by_sign.get(own, ()) if e.cls == "direct"]
    if not static_only and any((e.where.path, e.where.line) in at_work for e in proven):
        candidate.at_work = agrees = True
        candidate.score += AT_WORK
    for sign, (weight, conclusive, absent) in weights.items():
        sightings = by_sign.get(sign)
        if sightings and sign in beside and by_sign.keys().isdisjoint(beside[sign]):
            continue
        meant = known.sign(sign)
        if sightings:
            best = max(CLASS_FACTOR[e.cls] for e in sightings)
            if weight < 0:
                candidate.score += weight * best
                candidate.against += sightings
                continue
            family = meant.family if meant else sign
            amount = weight * best
            if sign.startswith(CODE_PREFIX) and not static_only and not agrees:
                amount *= max(SUSPICION[e.cls] for e in sightings)
            elif conclusive:
                candidate.conclusive = True
                amount += CONCLUSIVE_BONUS
            positive.setdefault(family, []).append(amount)
            candidate.strengths[sign] = amount
            candidate.evidence += sightings
        elif absent and meant is not None and meant.needs and observed.issuperset(meant.needs):
            candidate.score += absent
    for amounts in positive.values():
        for place, amount in enumerate(sorted(amounts, reverse=True)):
            candidate.score += amount * DAMPING[min(place, len(DAMPING) - 1)]
    candidate.evidence.sort(key=lambda e: (-candidate.strengths.get(e.sign, 0.0), e.where.line or 0, e.where.step or 0))
    return candidate


def _support_chains(candidates: Sequence[Candidate], known: Catalogue) -> None:
    """A mode whose known consequence is also seen gains a little: the chain explains more than its parts."""
    seen = {c.mode.id: c for c in candidates}
    for candidate in candidates:
        followers = [seen[n] for n in candidate.mode.leads_to if n in seen and seen[n].score > 0]
        if followers and candidate.from_run:
            candidate.score += 0.5


def _yield(candidates: Sequence[Candidate]) -> None:
    """A mode that only restates its message comes after the best supported one that explains the same."""
    for candidate in candidates:
        if not candidate.mode.restates:
            continue
        explaining = [
            other.score
            for other in candidates
            if not other.mode.restates
            and other.score >= EXPLAINS
            and (overlap(candidate, other) > 0 or _same_group(candidate, other))
        ]
        if explaining:
            candidate.score = min(candidate.score, max(explaining) - YIELDING)


def _same_group(one: Candidate, other: Candidate) -> bool:
    return one.mode.group is not None and one.mode.group == other.mode.group


def reaches(start: str, goal: str, known: Catalogue) -> bool:
    """True if ``leads_to`` leads from ``start`` to ``goal`` in one or more steps."""
    todo, seen = [start], {start}
    while todo:
        mode = known.mode(todo.pop())
        for name in mode.leads_to if mode else ():
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return False


def overlap(one: Candidate, other: Candidate) -> float:
    """How much of the weaker one's support (by strength) is evidence that both lean on, 0..1."""
    shared = one.strengths.keys() & other.strengths.keys()
    floor = ONE_REPORT if one.report is not None and one.report == other.report else 0.0
    if not shared:
        return floor
    weaker = min(one, other, key=lambda c: c.score)
    total = sum(weaker.strengths.values()) or 1.0
    return max(floor, sum(weaker.strengths[s] for s in shared) / total)


def _compete(candidates: Sequence[Candidate], known: Catalogue) -> None:
    """Set probabilities: a softmax over the rivals of each candidate and "none of these" (log odds 0)."""
    for candidate in candidates:
        terms = [0.0]
        for other in candidates:
            if other is candidate:
                continue
            part = overlap(candidate, other)
            same_group = candidate.mode.group is not None and candidate.mode.group == other.mode.group
            if part <= 0 and not same_group:
                continue
            if reaches(candidate.mode.id, other.mode.id, known):
                continue
            if not same_group and candidate.conclusive and not other.conclusive and not candidate.mode.restates:
                continue
            terms.append(other.score + math.log(max(part, 0.5 if same_group else part)))
        candidate.probability = 1.0 / sum(math.exp(min(t - candidate.score, 60.0)) for t in [candidate.score, *terms])


def classes(candidates: Iterable[Candidate]) -> set[EvidenceClass]:
    return {c.cls for c in candidates}
