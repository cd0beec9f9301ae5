"""The answer of the engine. Reports are pure functions of these types; ``to_json`` is the published contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal

from trainwreck import __version__
from trainwreck.core.evidence import SEVERITIES, Evidence, Severity, Where, jsonable
from trainwreck.core.fix import Edit as Edit
from trainwreck.core.fix import Fix as Fix
from trainwreck.core.frozen import Frozen
from trainwreck.core.row import Row

if TYPE_CHECKING:
    from trainwreck.core.run import Setting

SCHEMA = 1

Role = Literal["root", "contributing", "rival", "consequence"]
Status = Literal["complete", "partial", "nothing_found", "unreadable"]
Verdict = Literal["supported", "refuted", "undecided"]


class Location(Frozen):
    """A line of a file, or lines ``line`` to ``end_line`` of it."""

    path: str
    line: int | None
    end_line: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "line": self.line, "end_line": self.end_line or self.line}


class Reference(Frozen):
    """An entry of the literature and what it says of the failure mode."""

    key: str
    says: str

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "says": self.says}


class Cause(Frozen):
    """A failure mode as it stands in one diagnosis. ``confidence`` is the probability that it is a root cause here.

    ``tell_apart`` names, for each rival, the observation that would decide between the two.
    """

    id: str
    title: str
    role: Role
    group: str | None
    severity: Severity
    confidence: float
    evidence: Sequence[Evidence]
    against: Sequence[Evidence]
    location: Location | None
    why: str
    fix: Fix
    expected_impact: str
    verify: str
    if_not: str
    leads_to: Sequence[str]
    experiment: str
    references: Sequence[Reference]
    tell_apart: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "role": self.role,
            "group": self.group,
            "severity": self.severity,
            "confidence": round(self.confidence, 3),
            "evidence": [e.to_json() for e in self.evidence],
            "against": [e.to_json() for e in self.against],
            "location": self.location.to_json() if self.location else None,
            "why": self.why,
            "fix": self.fix.to_json(),
            "expected_impact": self.expected_impact,
            "verify": self.verify,
            "if_not": self.if_not,
            "leads_to": list(self.leads_to),
            "experiment": self.experiment,
            "references": [r.to_json() for r in self.references],
        }


class Link(Row):
    """One line of a proof. In a notebook ``cell`` counts the code cells from 1, and ``line`` the lines of the cell."""

    path: str
    line: int
    text: str
    cell: int | None = None

    def to_json(self) -> dict[str, Any]:
        plain = {"path": self.path, "line": self.line, "text": self.text}
        return {**plain, "cell": self.cell} if self.cell is not None else plain


class Finding(Frozen):
    """A located sighting that is a finding of its own (a static rule, an unreadable file).

    The end is where the marked text ends: ``end_column`` is the first column after it. ``proof`` are the lines that it
    follows from. In a notebook ``cell`` counts the code cells from 1, and ``line`` the lines of the cell.
    ``fingerprint`` names the finding independently of its line's number.
    """

    id: str
    sign: str
    severity: Severity
    message: str
    path: str
    line: int
    column: int = 1
    end_line: int | None = None
    end_column: int | None = None
    proof: Sequence[tuple[str, int, str] | Link] = ()
    fix: Fix | None = None
    cell: int | None = None
    fingerprint: str = ""

    @property
    def links(self) -> Sequence[Link]:
        """The proof, each line with its cell."""
        return [Link(*link) for link in self.proof]

    def to_json(self) -> dict[str, Any]:
        plain = {
            "id": self.id,
            "sign": self.sign,
            "severity": self.severity,
            "message": self.message,
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line or self.line,
            "end_column": self.end_column or self.column,
            "proof": [link.to_json() for link in self.links],
            "fix": self.fix.to_json() if self.fix else None,
        }
        return {**plain, "cell": self.cell} if self.cell is not None else plain


class Symptom(Frozen):
    """Something worth telling that is no finding: what was seen, never why."""

    id: str
    text: str
    where: Where

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "text": self.text, "where": self.where.to_json()}


class Suspect(Frozen):
    """What the evidence says of a theory that somebody put forward. ``id`` is the failure mode it was taken for."""

    text: str
    id: str | None
    verdict: Verdict
    evidence: Sequence[Evidence] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "id": self.id,
            "verdict": self.verdict,
            "evidence": [e.to_json() for e in self.evidence],
        }


class RunSummary(Frozen):
    """One run or attempt that was read. ``steps`` is the last step known, ``outcome`` how it ended."""

    path: str
    format: str
    attempt: int
    steps: float | None
    metrics: Sequence[str]
    outcome: str

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "format": self.format,
            "attempt": self.attempt,
            "steps": jsonable(self.steps),
            "metrics": list(self.metrics),
            "outcome": self.outcome,
        }


class Missing(Frozen):
    """An artefact that was not seen and would settle a remaining doubt."""

    artefact: str
    why: str

    def to_json(self) -> dict[str, Any]:
        return {"artefact": self.artefact, "why": self.why}


class Mark(Frozen):
    """A labelled step on a chart."""

    step: float
    text: str
    sign: str


class Chart(Frozen):
    """A down-sampled series for display (at most a few hundred points; extremes and non-finite points kept)."""

    name: str
    role: str | None
    unit: str
    run: str
    steps: Sequence[float]
    values: Sequence[float]
    marks: Sequence[Mark] = ()


Cell = float | str | None
"""One stretch of steps: a number, "nan" where something was not finite, None where nothing was recorded."""


class Heat(Frozen):
    """One quantity of all modules over stretches of steps of equal length, from ``first`` to ``last``."""

    quantity: str
    title: str
    first: float
    last: float
    rows: Sequence[tuple[str, Sequence[Cell]]]


class ModuleRow(Frozen):
    """One module in numbers: medians of gradient norm and update ratio, the last norm of its weights, its last largest
    output and share of zeros in it, and how many of all recorded values were not finite."""

    name: str
    gradient: float | None
    update_ratio: float | None
    weights: float | str | None
    output: float | str | None
    zeros: float | None
    nonfinite: int


class Modules(Frozen):
    """What a recording of one rank knows by module. ``memory``: (when, most bytes, last bytes)."""

    run: str
    rank: int
    heats: Sequence[Heat]
    rows: Sequence[ModuleRow]
    memory: Sequence[tuple[str, float, float]] = ()


class Excerpt(Frozen):
    """A few lines of a file (or of a notebook's cell) around a place; ``marked`` are the line numbers to point at."""

    path: str
    first_line: int
    lines: Sequence[str]
    marked: Sequence[int]
    title: str = ""
    cell: int | None = None


class RuleFacts(Frozen):
    """What a report may say of an id beyond the sighting: catalogue text for the help of SARIF and editors."""

    title: str
    why: str
    fix: str
    severity: Severity
    family: str


class Result(Frozen):
    """Everything that a verb answers.

    The fields from ``charts`` on are for people, not for the JSON. ``settings`` are the configured values of the
    runs, ``read`` the names of what was read, ``observed`` the roles and artefacts in it that could be judged (an
    answer of "nothing found" is worth as much as these). ``rules`` are facts on the ids of the findings. ``verb`` is
    what was asked; an answer of ``check`` is told as findings, one of ``diagnose`` as causes.
    """

    status: Status = "complete"
    root_causes: Sequence[Cause] = ()
    findings: Sequence[Finding] = ()
    symptoms: Sequence[Symptom] = ()
    compliance: Mapping[str, Any] | None = None
    suspects: Sequence[Suspect] = ()
    runs: Sequence[RunSummary] = ()
    missing: Sequence[Missing] = ()
    quick_fixes: Sequence[str] = ()
    analysis_artifacts: Mapping[str, str] = field(default_factory=dict)
    charts: Sequence[Chart] = ()
    modules: Sequence[Modules] = ()
    excerpts: Sequence[Excerpt] = ()
    chain: Sequence[str] = ()
    unreadable: Sequence[str] = ()
    settings: Sequence[Setting] = ()
    read: Sequence[str] = ()
    observed: Sequence[str] = ()
    rules: Mapping[str, RuleFacts] = field(default_factory=dict)
    verb: Literal["diagnose", "check"] = "diagnose"

    def summary(self) -> dict[str, int]:
        """Counts of findings and of causes that count: roots and contributors."""
        counts: dict[str, int] = {"critical": 0, "warning": 0, "suggestion": 0}
        counting = [c.severity for c in self.root_causes if c.role in ("root", "contributing")]
        # A cause and the finding that proves it are one thing, counted once.
        told = {c.id for c in self.root_causes if c.role in ("root", "contributing")}
        counting += [f.severity for f in self.findings if f.id not in told]
        for severity in counting:
            counts[severity] += 1
        deviations = [r for r in (self.compliance or {}).get("requirements", []) if r.get("status") == "deviation"]
        return {**counts, "deviations": len(deviations)}

    def worst(self) -> Severity | None:
        counts = self.summary()
        return next((s for s in reversed(SEVERITIES) if counts[s]), None)

    def with_artifacts(self, artifacts: Mapping[str, str]) -> Result:
        return replace(self, analysis_artifacts={**self.analysis_artifacts, **artifacts})

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "tool": {"name": "trainwreck", "version": __version__},
            "status": self.status,
            "root_causes": [c.to_json() for c in self.root_causes],
            "findings": [f.to_json() for f in self.findings],
            "symptoms": [s.to_json() for s in self.symptoms],
            "compliance": jsonable(self.compliance),
            "suspects": [s.to_json() for s in self.suspects],
            "runs": [r.to_json() for r in self.runs],
            "missing": [m.to_json() for m in self.missing],
            "quick_fixes": list(self.quick_fixes),
            "analysis_artifacts": dict(sorted(self.analysis_artifacts.items())),
            "summary": self.summary(),
        }
