"""The answer: ranked causes with roles, the chain, what is missing, what speaks for or against a suspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainwreck.catalogue.load import CODE_PREFIX, Catalogue
from trainwreck.core.evidence import SEVERITIES, Evidence, Severity, Where
from trainwreck.core.results import Cause, Fix, Location, Missing, Reference, Role
from trainwreck.reasoning.calibrate import confidence
from trainwreck.reasoning.resemble import MAX_WORDS, resemblances
from trainwreck.reasoning.weigh import Candidate, overlap, reaches, weigh

TELLING = 0.12
"""Confidence below which a cause is not told at all. A judgement: one in eight is noise to a reader."""
ALSO = 0.03
"""As TELLING, for the first three explanations of somebody's few words: the second thought is often the right one."""
MAX_CAUSES = 8
SETTLED = 0.7
"""DESIGN: below this the answer names what would decide."""
PROVEN = 0.8
"""Confidence from which a fault that was seen takes the curves for its consequence (a judgement)."""
WRITTEN = 0.3
"""The same for a fault that the code proves and no sign of the run speaks for: it has no more (SUSPICION)."""
CURVES = frozenset(("loss", "gradient"))
"""Families of signs that only say how a curve goes."""
OUTCOMES = frozenset(
    (
        "live-loss-at-label-entropy",
        "live-learns-nothing-though-it-moves",
        "live-predictions-unrelated",
        "live-rows-alike",
        "origin-overflow",
    )
)
"""Signs of the recorder that say no more than a curve does: nothing is learned, or what grew has overflowed."""
SEEN_AT_WORK = frozenset(("live", "origin"))
"""Families of signs that were seen in the process itself."""


@dataclass(frozen=True)
class Diagnosis:
    """Causes in order, ids from root to last consequence, and what would settle the doubt."""

    causes: Sequence[Cause]
    chain: Sequence[str]
    missing: Sequence[Missing]
    candidates: Sequence[Candidate]


def diagnose(
    evidence: Sequence[Evidence],
    known: Catalogue,
    observed: frozenset[str] = frozenset(),
    *,
    static_only: bool = False,
    reports: Sequence[tuple[str, str]] = (),
) -> Diagnosis:
    """Weigh ``evidence`` against the whole catalogue. Deterministic: same input, same order, same numbers.

    ``reports`` are descriptions by people, (name, text): they are also compared with the catalogue's own words.
    """
    short = [(name, text) for name, text in reports if 0 < len(text.split()) <= MAX_WORDS]
    alike = resemblances(short, known)
    names = frozenset(name for name, _ in short)
    candidates = weigh(evidence, known, observed, static_only=static_only, resembling=alike, reports=names)
    _calibrate(candidates)
    told = [c for c in candidates if _confidence(c) >= TELLING][:MAX_CAUSES]
    if told and short:
        others = [c for c in candidates if c.report is not None and TELLING > _confidence(c) >= ALSO]
        told += others[: max(0, 3 - len(told))]
    roles = _roles(told, known)
    ordered = sorted(told, key=lambda c: (_place(roles[c.mode.id]), -c.probability, -c.score, c.mode.id))
    causes = [_cause(c, roles[c.mode.id], known, told) for c in ordered]
    return Diagnosis(causes, _chain(ordered, roles, known), _missing(ordered, roles, known, observed), candidates)


def _calibrate(candidates: Sequence[Candidate]) -> None:
    """Set confidences. The curves are fitted on first answers, so they may raise only the first; rivals that both rose
    could claim more than certainty together."""
    for place, candidate in enumerate(candidates):
        fitted = confidence(candidate.probability, candidate.cls, candidate.mode.maturity)
        candidate.confidence = fitted if place == 0 else min(fitted, candidate.probability)


def _confidence(candidate: Candidate) -> float:
    return candidate.confidence


def _place(role: Role) -> int:
    return 1 if role == "consequence" else 0


def _roles(told: Sequence[Candidate], known: Catalogue) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    accepted: list[Candidate] = []
    written = any(_written(c) for c in told)
    for candidate in told:
        name = candidate.mode.id
        sources = [a for a in accepted if roles[a.mode.id] == "root" and reaches(a.mode.id, name, known)]
        rivals = [a for a in accepted if roles[a.mode.id] != "consequence" and _rivals(a, candidate)]
        proven = [a for a in accepted if roles[a.mode.id] == "root" and _explains_curves(a, known)]
        if (sources and _confidence(sources[0]) >= 0.4) or ((proven or written) and _only_curves(candidate, known)):
            roles[name] = "consequence"
        elif rivals:
            roles[name] = "rival"
        elif not candidate.from_run and any(a.from_run and roles[a.mode.id] != "consequence" for a in accepted):
            roles[name] = "contributing"
        else:
            roles[name] = "root"
        accepted.append(candidate)
    return roles


def _explains_curves(candidate: Candidate, known: Catalogue) -> bool:
    """True for a fault that was seen to work in the process itself: how the curves go is what follows from it."""
    families = {meant.family for e in candidate.evidence if (meant := known.sign(e.sign)) is not None}
    seen = not families.isdisjoint(SEEN_AT_WORK) and candidate.cls == "direct"
    return seen and _confidence(candidate) >= PROVEN and not _only_curves(candidate, known)


def _written(candidate: Candidate) -> bool:
    """True for a fault that the code proves and that spoils a training by itself: curves follow from it as well."""
    if candidate.mode.severity != "critical" or _confidence(candidate) < WRITTEN:
        return False
    return any(e.sign == CODE_PREFIX + candidate.mode.id and e.cls == "direct" for e in candidate.evidence)


def _only_curves(candidate: Candidate, known: Catalogue) -> bool:
    """True for a mode that nothing speaks for but the way in which loss and gradient move."""
    rest = [e.sign for e in candidate.evidence if e.sign not in OUTCOMES]
    return not candidate.conclusive and all((m := known.sign(s)) is not None and m.family in CURVES for s in rest)


def _rivals(one: Candidate, other: Candidate) -> bool:
    if one.mode.group is not None and one.mode.group == other.mode.group:
        return True
    return overlap(one, other) >= 0.3 and not (one.conclusive and other.conclusive)


def _cause(candidate: Candidate, role: Role, known: Catalogue, told: Sequence[Candidate]) -> Cause:
    mode = candidate.mode
    first = mode.fixes[0] if mode.fixes else {}
    others = {c.mode.id for c in told}
    return Cause(
        id=mode.id,
        title=mode.title,
        role=role,
        group=mode.group,
        severity=_severity(candidate),
        confidence=_confidence(candidate),
        evidence=tuple(candidate.evidence[:12]),
        against=tuple(candidate.against[:6]),
        location=location(candidate.evidence),
        why=mode.mechanism,
        fix=Fix(first.get("do", "")),
        expected_impact=first.get("expect", ""),
        verify=first.get("verify", ""),
        if_not=mode.if_not,
        leads_to=mode.leads_to,
        experiment=mode.experiment,
        references=tuple(Reference(r["key"], r["says"]) for r in mode.references),
        tell_apart={name: text for name, text in mode.mistaken_for.items() if name in others},
    )


UNSURE = 0.2
"""A cause that is four times as likely not to be is a warning at most; a judgement."""


def _severity(candidate: Candidate) -> Severity:
    """That of the mode, or less where every sighting says that it is less here, or where it is hardly believed."""
    said = [e.severity for e in candidate.evidence]
    given = [s for s in said if s is not None]
    least: list[Severity] = [candidate.mode.severity]
    if given and len(given) == len(said):
        least.append(max(given, key=SEVERITIES.index))
    if _confidence(candidate) < UNSURE:
        least.append("warning")
    return min(least, key=SEVERITIES.index)


def location(evidence: Sequence[Evidence]) -> Location | None:
    """Where to fix: the place that the static side names for it, else the innermost user line of the error, else a
    configured value. A metric or a log line is no place to fix."""
    static = [e.where for e in evidence if e.sign.startswith(CODE_PREFIX) and e.where.path]
    placed = [e.where for e in evidence if e.where.kind in ("code", "config") and e.where.path]
    where: Where | None = next(iter([*static, *placed]), None)
    return Location(where.path, where.line) if where is not None and where.path else None


def _chain(ordered: Sequence[Candidate], roles: Mapping[str, Role], known: Catalogue) -> list[str]:
    """From the first root through its seen consequences, in causal order."""
    root = next((c.mode.id for c in ordered if roles[c.mode.id] == "root"), None)
    if root is None:
        return []
    after = [c.mode.id for c in ordered if roles[c.mode.id] == "consequence" and reaches(root, c.mode.id, known)]
    after.sort(key=lambda n: (sum(reaches(m, n, known) for m in after), n))
    return [root, *after]


def _missing(
    ordered: Sequence[Candidate], roles: Mapping[str, Role], known: Catalogue, observed: frozenset[str]
) -> list[Missing]:
    """Artefacts that would show the signs which tell the open candidates apart."""
    if not ordered or _confidence(ordered[0]) >= SETTLED:
        return []
    open_ones = [c for c in ordered if roles[c.mode.id] in ("root", "rival")][:4]
    wanted: dict[str, tuple[float, list[str]]] = {}
    for candidate in open_ones:
        for entry in candidate.mode.signs:
            meant = known.sign(entry.sign)
            if meant is None or entry.sign in candidate.strengths or abs(entry.weight) < 1.0:
                continue
            for need in meant.needs:
                if need not in observed and _belongs_here(need, known, observed):
                    strength, reasons = wanted.get(need, (0.0, []))
                    side = "for" if entry.weight > 0 else "against"
                    reasons.append(f"{meant.meaning} would speak {side} {candidate.mode.id}")
                    wanted[need] = (strength + abs(entry.weight), reasons)
    ranked = sorted(wanted.items(), key=lambda item: (-item[1][0], item[0]))
    names = known.raw("needs")
    return [Missing(names[n]["name"], "; ".join(dict.fromkeys(reasons[:2]))) for n, (_, reasons) in ranked[:4]]


def _belongs_here(need: str, known: Catalogue, observed: frozenset[str]) -> bool:
    """True if asking for it makes sense: nobody needs the KL of a run that has no rewards."""
    entry = known.raw("needs").get(need)
    if entry is None:
        return False
    company = entry.get("beside", ())
    return not company or not observed.isdisjoint(company)
