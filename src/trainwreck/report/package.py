"""The answer in the shape that the ``ml-training-debugger`` skill hands back: evidence and fixes as sentences."""

from __future__ import annotations

from typing import Any

from trainwreck.core.results import Cause, Result
from trainwreck.report import words
from trainwreck.report.json import dumps
from trainwreck.report.safe import line

STATUS = {
    "complete": "diagnosis_complete",
    "partial": "diagnosis_partial",
    "nothing_found": "no_failure_found",
    "unreadable": "artifacts_unreadable",
}
SURE = 0.8
"""The skill asks for this confidence, or for a request of more data."""


def render(result: Result, form: str = "package", **_: Any) -> str:
    return dumps(package(result), indent=True) + "\n"


def package(result: Result) -> dict[str, Any]:
    """The skill's four keys, and ``requested_artifacts`` where the answer is not sure enough without more."""
    causes = [c for c in result.root_causes if c.role != "consequence"]
    answer: dict[str, Any] = {
        "status": STATUS[result.status],
        "root_causes": [_cause(c) for c in causes],
        "quick_fixes": [line(text, 1000) for text in result.quick_fixes],
        "analysis_artifacts": {line(k): line(v) for k, v in sorted(result.analysis_artifacts.items())},
    }
    if (not causes or causes[0].confidence < SURE) and result.missing:
        answer["requested_artifacts"] = [f"{line(m.artefact)}: {line(m.why)}" for m in result.missing]
    if result.unreadable:
        answer["unreadable_artifacts"] = [line(text) for text in result.unreadable]
    return answer


def _cause(cause: Cause) -> dict[str, Any]:
    seen = []
    for item in cause.evidence:
        place = words.place(item.where)
        sentence = words.evidence_text(item) + (f" ({place})" if place else "")
        if sentence not in seen:
            seen.append(sentence)
    return {
        "issue": line(cause.title),
        "severity": cause.severity,
        "evidence": seen,
        "fix": _fix(cause),
        "confidence": round(cause.confidence, 3),
        "id": cause.id,
        "role": cause.role,
        "location": words.cause_place(cause) or None,
    }


def _fix(cause: Cause) -> str:
    """What to do, what to expect, how to check, what next: the four parts that the skill asks of every fix."""
    parts = [line(cause.fix.text)]
    for label, text in (
        ("Expected", cause.expected_impact),
        ("Verify", cause.verify),
        ("If ineffective", cause.if_not),
    ):
        if text.strip():
            parts.append(f"{label}: {line(text)}")
    return " ".join(p if p.endswith((".", "!", "?")) else p + "." for p in parts if p)
