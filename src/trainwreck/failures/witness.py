"""Look for errors in every text, match them with the known signatures, name their parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainwreck.core.evidence import Evidence, EvidenceClass, Where
from trainwreck.core.failure import Failure, Frame
from trainwreck.core.program import Program
from trainwreck.core.source import Source
from trainwreck.failures.excerpts import excerpts
from trainwreck.failures.frames import FileMap, localise
from trainwreck.failures.generic import generic_signs
from trainwreck.failures.parse import Parser
from trainwreck.failures.scan import scan
from trainwreck.failures.signatures import Match, Signature, compile_signatures, in_failure, in_line, in_report

__all__ = ["ErrorSightings", "excerpts", "witness"]

NO_TEXT = (
    ".py",
    ".pyi",
    ".toml",
    ".yaml",
    ".yml",
    ".sh",
    ".cfg",
    ".ini",
    ".md",
    ".rst",
    ".csv",
    ".tsv",
    ".html",
    ".ipynb",
)
REPORT_LIMIT = 64 << 10
"""Bytes of standard input that are also read as prose; what is longer is a log."""
MAX_PER_SIGN = 3
STILL_GOING = 3
"""Progress lines after a traceback that show that the run went on (one or two may come from other ranks' buffers)."""


@dataclass
class ErrorSightings:
    """What was reported: the failures with their frames, and the signs that their messages and surroundings give."""

    failures: Sequence[Failure] = ()
    evidence: Sequence[Evidence] = ()
    observed: frozenset[str] = frozenset()


def witness(
    sources: Sequence[Source],
    signatures: Sequence[Mapping[str, Any]],
    *,
    program: Program | None = None,
    reports: Sequence[str] = (),
    skip: Collection[str] = (),
) -> ErrorSightings:
    """Failures and signs from the texts among ``sources`` (not those in ``skip``, no sources of programs).

    ``reports`` are symptoms in somebody's words; standard input is read as a log and as such a report. ``program``
    tells which frames are local files.
    """
    known = compile_signatures(signatures)
    by_line = [s for s in known if "line" in s.scopes]
    files = FileMap(program)
    failures: list[Failure] = []
    evidence: list[Evidence] = []
    observed: set[str] = set()
    for source in sources:
        if source.is_binary or source.name in skip or source.basename.endswith(NO_TEXT):
            continue
        observed.add("console")
        report = source.name == "<stdin>" and (source.size or 0) <= REPORT_LIMIT
        found, lines = read(source, by_line)
        found = [localise(f, files) for f in found]
        failures += found
        evidence += lines
        for failure in found:
            evidence += _from_failure(failure, known)
        if report:
            evidence += _from_report(source.text(REPORT_LIMIT), known, source.name)
            observed.add("report")
    for text in reports:
        evidence += _from_report(text, known, None)
        observed.add("report")
    if any(f.fatal or f.frames for f in failures):
        observed.add("traceback")
    return ErrorSightings(failures, _limited(evidence), frozenset(observed))


def read(source: Source, by_line: Sequence[Signature]) -> tuple[list[Failure], list[Evidence]]:
    parser = Parser(source.name)
    evidence: list[Evidence] = []
    later: list[int] = []
    fragments = sorted({fragment for s in by_line for fragment in s.contains})
    told: dict[str, int] = {}

    def seen(number: int, text: str) -> None:
        where = Where("log", path=source.name, line=number)
        for match in in_line(text, by_line):
            sign = match.signature.sign
            told[sign] = told.get(sign, 0) + 1
            if told[sign] <= MAX_PER_SIGN:
                evidence.append(_evidence(match, where, text.strip()[:200]))

    def progress(number: int, text: str) -> None:
        later.append(number)
        if len(later) > 4096:
            del later[:2048:2]

    try:
        scan(source, parser, fragments, seen, progress)
    except (OSError, EOFError, ValueError):
        parser.close()
    return [_fate(f, later) for f in parser.failures], evidence


def _fate(failure: Failure, progress: Sequence[int]) -> Failure:
    """Not fatal where training went on after it, told by the position in the text."""
    after = sum(1 for number in progress if number > (failure.end_line or 0))
    return replace(failure, fatal=False) if failure.fatal and after >= STILL_GOING else failure


def chain(failure: Failure) -> Iterator[Failure]:
    """The failure and its causes, outermost first."""
    current: Failure | None = failure
    while current is not None:
        yield current
        current = current.cause


def _from_failure(failure: Failure, known: Sequence[Signature]) -> list[Evidence]:
    links = list(reversed(list(chain(failure))))
    found: list[Evidence] = []
    specific = False
    for place, link in enumerate(links):
        where = _where(link, failure)
        context = link.context or failure.context
        for match in in_failure(replace(link, context=context), known):
            item = _evidence(match, where, _headline(link))
            weaker = specific and (place > 0 or match.signature.echo)
            found.append(_weaker(item) if weaker or (not failure.fatal and not link.type.endswith("Warning")) else item)
        specific = specific or bool(found)
    found += generic_signs(failure, links, [_where(link, failure) for link in links])
    return found


def _weaker(item: Evidence) -> Evidence:
    lower: dict[EvidenceClass, EvidenceClass] = {
        "direct": "circumstantial",
        "circumstantial": "inferred",
        "inferred": "inferred",
    }
    return replace(item, cls=lower[item.cls])


def _where(link: Failure, whole: Failure) -> Where:
    """The innermost user frame of this exception, else of the whole chain, else the line of the log."""
    frame = _user_frame(link) or whole.surfaced
    if frame is not None and frame.user and frame.line > 0:
        return Where("code", path=frame.path.replace("\\", "/"), line=frame.line, rank=link.rank)
    return Where("log", path=link.path or None, line=link.line, rank=link.rank)


def _user_frame(link: Failure) -> Frame | None:
    return next((f for f in reversed(link.frames) if f.user), None)


def _headline(failure: Failure) -> str:
    first = failure.message.strip().splitlines()[0] if failure.message.strip() else ""
    return f"{failure.type}: {first}"[:240] if first else failure.type


def _from_report(text: str, known: Sequence[Signature], name: str | None) -> list[Evidence]:
    where = Where("log", path=name, line=1 if name else None)
    return [
        _evidence(match, where, text.strip().splitlines()[0][:200]) for match in in_report(text, known) if text.strip()
    ]


def _evidence(match: Match, where: Where, fallback: str) -> Evidence:
    signature = match.signature
    return Evidence(signature.sign, signature.cls, match.sentence(fallback), where, dict(match.value) or None)


def _limited(evidence: Sequence[Evidence]) -> list[Evidence]:
    """At most MAX_PER_SIGN sightings of a sign, those with a place in the code first, then the most direct."""
    rank = {"direct": 0, "circumstantial": 1, "inferred": 2}
    kept: list[Evidence] = []
    count: dict[str, int] = {}
    told: set[str] = set()
    for item in sorted(evidence, key=lambda e: (e.where.kind != "code", rank[e.cls])):
        if item.id in told or count.get(item.sign, 0) >= MAX_PER_SIGN:
            continue
        told.add(item.id)
        count[item.sign] = count.get(item.sign, 0) + 1
        kept.append(item)
    return kept
