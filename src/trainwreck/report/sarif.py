"""SARIF 2.1.0 (OASIS): what GitHub code scanning reads. Paths are relative, so that alerts can be matched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from trainwreck import __version__
from trainwreck.core.results import Finding, Fix, Link, Result
from trainwreck.report.json import dumps
from trainwreck.report.safe import encodable, line

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"critical": "error", "warning": "warning", "suggestion": "note"}


def render(result: Result, form: str = "sarif", **_: Any) -> str:
    """One run with its rules, results and what could not be read."""
    found = [f for f in result.findings if f.sign != "unreadable"]
    ids = sorted({f.id for f in found})
    index = {name: number for number, name in enumerate(ids)}
    run = {
        "tool": {
            "driver": {
                "name": "trainwreck",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(name, result) for name in ids],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": result.status != "unreadable",
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": line(text, 400)}} for text in result.unreadable
                ],
            }
        ],
        "results": [_result(f, index) for f in found],
    }
    return dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=True) + "\n"


def _rule(name: str, result: Result) -> dict[str, Any]:
    facts = result.rules.get(name)
    if facts is None:
        return {"id": name, "shortDescription": {"text": name}}
    text = "\n\n".join(filter(None, (facts.why.strip(), f"Fix: {facts.fix.strip()}" if facts.fix else "")))
    return {
        "id": name,
        "shortDescription": {"text": facts.title},
        "fullDescription": {"text": facts.why.strip() or facts.title},
        "help": {"text": text or facts.title, "markdown": text or facts.title},
        "defaultConfiguration": {"level": LEVELS[facts.severity]},
        "properties": {"tags": [facts.family] if facts.family else [], "problem.severity": _problem(facts.severity)},
    }


def _problem(severity: str) -> str:
    return {"critical": "error", "warning": "warning"}.get(severity, "recommendation")


def _result(finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "ruleId": finding.id,
        "ruleIndex": index[finding.id],
        "level": LEVELS[finding.severity],
        "message": {"text": line(_in_cell(finding.cell, finding.line) + finding.message, 1000)},
        "locations": [_location(finding.path, _region(finding), finding.cell)],
    }
    if finding.fingerprint:
        answer["partialFingerprints"] = {"trainwreck/v1": finding.fingerprint}
    if finding.proof:
        steps = [_proven(link) for link in finding.links]
        last = finding.links[-1]
        if (last.path, last.cell, last.line) != (finding.path, finding.cell, finding.line):
            steps.append(_step(finding.path, _region(finding), line(finding.message, 300), finding.cell))
        answer["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    # A correction within a cell can't be told as lines of the file that holds it.
    if finding.fix and finding.fix.edits and all(edit.cell is None for edit in finding.fix.edits):
        answer["fixes"] = [_fix(finding.fix)]
    return answer


def _in_cell(cell: int | None, number: int) -> str:
    return f"cell {cell}, line {number}: " if cell is not None else ""


def _region(finding: Finding) -> dict[str, int]:
    if finding.cell is not None:
        return {"startLine": 1}  # the lines are those of a cell; an alert can only stand on the file
    region = {"startLine": finding.line, "startColumn": finding.column}
    if finding.end_line and finding.end_column:
        region |= {"endLine": finding.end_line, "endColumn": finding.end_column}
    return region


def _location(path: str, region: dict[str, int], cell: int | None = None) -> dict[str, Any]:
    where: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": uri(path)}, "region": region},
    }
    if cell is not None:
        where["logicalLocations"] = [{"name": f"cell {cell}", "kind": "module"}]
    return where


def _proven(link: Link) -> dict[str, Any]:
    region = {"startLine": max(link.line, 1) if link.cell is None else 1}
    return _step(link.path, region, _in_cell(link.cell, link.line) + line(link.text, 200), link.cell)


def _step(path: str, region: dict[str, int], text: str, cell: int | None) -> dict[str, Any]:
    return {"location": {**_location(path, region, cell), "message": {"text": text}}}


def _fix(fix: Fix) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        region = {"startLine": edit.line, "startColumn": 1, "endLine": edit.end_line}
        if edit.text:
            replacement: dict[str, Any] = {"deletedRegion": region, "insertedContent": {"text": edit.text.rstrip("\n")}}
        else:
            replacement = {"deletedRegion": {**region, "endLine": edit.end_line + 1, "endColumn": 1}}
        changes.setdefault(edit.path, []).append(replacement)
    return {
        "description": {"text": line(fix.text, 600) or "correct it"},
        "artifactChanges": [_change(path, parts) for path, parts in changes.items()],
    }


def _change(path: str, replacements: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"artifactLocation": {"uri": uri(path)}, "replacements": list(replacements)}


def uri(path: str) -> str:
    """``path`` as a URI reference; an absolute one with its scheme."""
    text = quote(encodable(path))
    return f"file://{text}" if text.startswith("/") else text
