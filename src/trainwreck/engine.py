"""The centre: collect from the witnesses, remove doubles, reason, return results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainwreck.catalogue.load import CODE_PREFIX, Catalogue, catalogue
from trainwreck.collect import Collected, collect
from trainwreck.core.errors import NothingReadable
from trainwreck.core.evidence import Evidence, Severity, Unreadable
from trainwreck.core.program import Problem
from trainwreck.core.results import Cause, Finding, Link, Location, Result, RuleFacts, RunSummary, Status, Symptom
from trainwreck.core.source import Source

if TYPE_CHECKING:
    from trainwreck.code import StaticSightings

Look = Callable[[Sequence[Source]], "StaticSightings"]

LIVE_PREFIX = "live-"
"""Signs that the flight recorder saw in the process itself."""
BROKEN = "broken-file"
"""The rule of files that their own language refuses."""


def diagnose(
    paths: Iterable[str | Path],
    *,
    code: Iterable[str | Path] = (),
    suspects: Sequence[str] = (),
    symptoms: Sequence[str] = (),
    stdin: bytes | None = None,
) -> Result:
    """Find out why a run failed.

    ``paths``: run directories, logs, metrics files, pasted reports (``-``). ``code``: sources that are not below them.
    ``suspects``: theories to be judged. ``symptoms``: what somebody saw, in words.
    Raises NothingReadable if none of ``paths`` could be read.
    """
    from trainwreck import code as code_witness
    from trainwreck import failures as error_witness
    from trainwreck import runs as run_witness
    from trainwreck.joining import join
    from trainwreck.reasoning.diagnose import diagnose as reason
    from trainwreck.reasoning.suspects import judge

    known = catalogue()
    found = collect(paths, stdin)
    extra = collect(code)
    if not found.sources and found.unreadable:
        raise NothingReadable("; ".join(f"{u.path}: {u.reason}" for u in found.unreadable))

    program = code_witness.build([*found.sources, *extra.sources])
    seen_runs = run_witness.witness(found.sources)
    failed = [*found.unreadable, *seen_runs.unreadable]
    if found.sources and {source.name for source in found.sources} <= {item.path for item in failed}:
        raise NothingReadable("; ".join(f"{item.path}: {item.reason}" for item in failed))
    seen_errors = error_witness.witness(
        found.sources, known.signatures, program=program, reports=symptoms, skip=seen_runs.structured
    )
    static = code_witness.witness(program, seen_errors.failures, assume_newest=False)
    seen = join(seen_runs.evidence, seen_runs.runs, static.project)
    evidence = without_doubles([*seen_errors.evidence, *seen, *static.evidence])
    observed = frozenset({*seen_runs.observed, *seen_errors.observed, *static.observed})

    said = [(f"symptom {n}", text) for n, text in enumerate(symptoms, 1)]
    said += [(s.name, s.text(1 << 16)) for s in found.sources if s.name == "<stdin>" and not s.is_binary]
    answer = reason(evidence, known, observed, reports=said)
    causes = [_placed(cause, static) for cause in answer.causes]
    unreadable = [*found.unreadable, *extra.unreadable, *seen_runs.unreadable]
    findings = [*map(unreadable_finding, unreadable), *_static_findings(static.evidence, known)]
    told = _symptoms([*seen_runs.evidence, *seen_errors.evidence], known)
    result = Result(
        status=_status(found, unreadable, bool(causes or findings or told)),
        root_causes=causes,
        findings=sorted(findings, key=finding_order),
        symptoms=told,
        suspects=judge(suspects, answer, known),
        runs=[_summary(run) for run in seen_runs.runs],
        missing=answer.missing,
        quick_fixes=[c.fix.text for c in answer.causes if c.role in ("root", "contributing") and c.fix.text][:3],
        charts=run_witness.charts(seen_runs.runs, evidence),
        modules=run_witness.modules(seen_runs.runs),
        excerpts=error_witness.excerpts(found.sources, program, causes),
        chain=answer.chain,
        unreadable=[f"{u.path}: {u.reason}" for u in unreadable],
        settings=[setting for run in seen_runs.runs for setting in run.settings.values()],
        read=[source.name for source in (*found.sources, *extra.sources)],
        observed=sorted(observed),
    )
    return result


def check(sources: Sequence[Source], *, targets: Mapping[str, str] | None = None, look: Look | None = None) -> Result:
    """Static analysis of ``sources`` (programs, notebooks, configurations, launch scripts).

    ``targets``: versions to check against, by package name; they win over what the project pins. ``look``: how the
    rules are run over the sources; without it all of them are one program.
    ``findings`` are all sightings, located; ``root_causes`` the failure modes that they prove or suggest.
    """
    from trainwreck import code as code_witness

    known = catalogue()
    if look is None:
        static = code_witness.witness(code_witness.build(sources), targets=targets)
    else:
        static = look(sources)
    proven = [e for e in static.evidence if e.cls != "inferred"]  # the others need a run that agrees
    causes: Sequence[Cause] = ()
    if proven:  # a script without any has no need of what weighs causes
        from trainwreck.reasoning.diagnose import diagnose as reason

        causes = reason(proven, known, static.observed, static_only=True).causes
    problems = static.problems
    findings = [*(problem_finding(p, known) for p in problems), *_static_findings(static.evidence, known)]
    return Result(
        status="partial" if any(not p.syntax for p in problems) else "complete" if findings else "nothing_found",
        root_causes=[_placed(cause, static) for cause in causes],
        findings=sorted(findings, key=finding_order),
        unreadable=[f"{p.path}: {p.reason}" for p in problems if not p.syntax],
        read=[source.name for source in sources],
        observed=sorted(static.observed),
        rules=facts((f.id for f in findings), known),
        verb="check",
    )


def without_doubles(evidence: Iterable[Evidence]) -> list[Evidence]:
    """One sighting per (sign, attempt, place): a NaN told by the console, the event file and trainer_state is one.

    Metric sightings of one sign within the same attempt whose steps lie within 2% (or two steps) of each other are the
    same fact seen in several files; the more direct one, then the first, is kept.
    """
    kept: dict[str, list[Evidence]] = {}
    for item in evidence:
        same = kept.setdefault(item.sign, [])
        if not any(_same_fact(item, other) for other in same):
            same.append(item)
    return [item for same in kept.values() for item in same]


def _same_fact(one: Evidence, other: Evidence) -> bool:
    if one.id == other.id:
        return True
    a, b = one.where, other.where
    if a.kind != "metric" or b.kind != "metric" or one.attempt != other.attempt or a.path == b.path:
        return False
    if a.step is None or b.step is None:
        return a.step == b.step
    return abs(a.step - b.step) <= max(2.0, 0.02 * max(abs(a.step), abs(b.step)))


def _placed(cause: Cause, static: StaticSightings) -> Cause:
    """``cause`` at the place that decides it in the code, where no static sighting has named one yet."""
    if any(e.sign.startswith(CODE_PREFIX) or _seen_at_line(e) for e in cause.evidence):
        return cause
    where = static.place(CODE_PREFIX + cause.id)
    return cause if where is None or not where.path else replace(cause, location=Location(where.path, where.line))


def _seen_at_line(item: Evidence) -> bool:
    """True for what a recorder saw at a line of the program itself."""
    return item.sign.startswith(LIVE_PREFIX) and item.where.kind == "code" and item.where.line is not None


def _status(found: Collected, unreadable: Sequence[Unreadable], anything: bool) -> Status:
    if not found.sources:
        return "unreadable"
    if unreadable:
        return "partial"
    return "complete" if anything else "nothing_found"


def unreadable_finding(item: Unreadable) -> Finding:
    """What could not be read, as a finding."""
    line = item.where.line if item.where and item.where.line else 1
    return Finding("unreadable", "unreadable", "suggestion", f"{item.path}: {item.reason}", item.path, line)


def problem_finding(item: Problem, known: Catalogue) -> Finding:
    """A file that the language refuses is a finding; one that could not be read is told as such."""
    sign = BROKEN if item.syntax else "unreadable"
    severity: Severity = known.rules[sign]["severity"]
    message = item.reason if item.syntax else f"{item.path}: {item.reason}"
    return Finding(sign, sign, severity, message, item.path, item.line or 1, item.column or 1, cell=item.cell)


def _static_findings(evidence: Sequence[Evidence], known: Catalogue) -> list[Finding]:
    findings = []
    for item in evidence:
        name = known.resolve(item.sign) or item.sign
        mode, rule = known.mode(name), known.rules.get(name)
        severity = mode.severity if mode else (rule or {}).get("severity", "suggestion")
        where = item.where
        severity = item.severity or severity
        if item.cls == "direct" and where.path and where.line:
            end_line, end_column = item.until or (None, None)
            findings.append(
                Finding(
                    id=name,
                    sign=item.sign,
                    severity=severity,
                    message=item.text,
                    path=where.path,
                    line=where.line,
                    column=where.column or 1,
                    end_line=end_line,
                    end_column=end_column,
                    proof=_proof(item),
                    fix=item.fix,
                    cell=where.cell,
                )
            )
    return findings


def _proof(item: Evidence) -> Sequence[Link]:
    """The places that a rule gave with its sighting."""
    links = item.value.get("proof", ()) if isinstance(item.value, dict) else ()
    return [Link(str(path), int(line), str(text), *cell) for path, line, text, *cell in links]


def facts(ids: Iterable[str], known: Catalogue) -> dict[str, RuleFacts]:
    """What the catalogue says of these failure modes and rules."""
    told = {}
    for name in sorted(set(ids)):
        mode, rule = known.mode(name), known.rules.get(name)
        if mode is not None:
            fix = next((f["do"] for f in mode.fixes), "")
            told[name] = RuleFacts(mode.title, mode.mechanism, fix, mode.severity, mode.family)
        elif rule is not None:
            texts = [str(rule.get(key, "")) for key in ("title", "why", "fix")]
            severity: Severity = rule.get("severity", "suggestion")
            told[name] = RuleFacts(texts[0], texts[1], texts[2], severity, str(rule.get("family", "")))
    return told


def finding_order(item: Finding) -> tuple[int, str, int, int, str]:
    """Worst first, then by place."""
    return (["critical", "warning", "suggestion"].index(item.severity), item.path, item.cell or 0, item.line, item.id)


def _symptoms(evidence: Sequence[Evidence], known: Catalogue) -> list[Symptom]:
    """The signs worth telling, once each, in the order in which they were seen."""
    told: dict[str, Symptom] = {}
    for item in evidence:
        meant = known.sign(item.sign)
        if meant is not None and meant.symptom and item.sign not in told:
            told[item.sign] = Symptom(item.sign, item.text, item.where)
    return list(told.values())


def _summary(run: object) -> RunSummary:
    from trainwreck.core.run import Run

    assert isinstance(run, Run)
    return RunSummary(run.path, run.format, run.attempt, run.last_step, sorted(run.series), run.outcome)
