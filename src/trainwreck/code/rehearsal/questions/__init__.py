"""Questions that rules ask of a rehearsal. One file for a topic; each question yields ``Answer``s."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal import Rehearsing, rehearsals
from trainwreck.code.rehearsal.domain import Place
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence, EvidenceClass, Severity
from trainwreck.core.row import Row


class Answer(Row):
    """What a question found: where, in words, and the places that show it, from the fault onwards."""

    place: Place
    text: str
    proof: tuple[Place, ...] = ()
    cls: EvidenceClass = "direct"
    severity: Severity | None = None
    """How bad it is here, where that is not what the rule's id says."""


Question = Callable[[Rehearsing], Iterable[Answer]]


def answers(rule: str, project: Project, question: Question, told: set[int] | None = None) -> Iterator[Evidence]:
    """The answers to ``question`` in every rehearsal of the program as sightings of ``rule``, each place once.

    ``told``: lines that the rule has spoken of already."""
    seen = set(told or ())
    for run in rehearsals(project):
        for answer in question(run):
            line = int(getattr(answer.place[0], "lineno", 0))
            if line in seen:
                continue
            seen.add(line)
            proof = [_link(place) for place in answer.proof]
            yield sighting(rule, answer.place, answer.text, proof=proof, cls=answer.cls, severity=answer.severity)


def further(rule: str, project: Project, found: Iterable[Evidence], *questions: Question) -> Iterator[Evidence]:
    """``found``, and the answers to the questions in files of which nothing was found: both speak of one fault."""
    files = set()
    for evidence in found:
        files.add(evidence.where.path)
        yield evidence
    lines: set[tuple[str | None, int | None]] = set()
    for question in questions:
        for evidence in answers(rule, project, question):
            place = (evidence.where.path, evidence.where.line)
            if evidence.where.path not in files and place not in lines:
                lines.add(place)
                yield evidence


def _link(place: Place) -> tuple[str, int, str]:
    from trainwreck.code.calls import written
    from trainwreck.code.rule import at

    path, line, _, _ = at(*place)
    node = place[0]
    return path, line, written(node)[:100] if hasattr(node, "lineno") else ""
