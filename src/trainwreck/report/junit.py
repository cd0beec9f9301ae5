"""JUnit XML: a test case for each finding. Suggestions pass, what could not be read is an error."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from trainwreck.core.results import Finding, Result
from trainwreck.report.safe import encodable, line


def render(result: Result, form: str = "junit", **_: Any) -> str:
    """One suite. Where nothing was found it holds one test that passed."""
    failed = sum(f.severity != "suggestion" for f in result.findings if f.sign != "unreadable")
    errors = sum(f.sign == "unreadable" for f in result.findings)
    count = max(1, len(result.findings))
    head = f'tests="{count}" failures="{failed}" errors="{errors}"'
    rows = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="trainwreck" {head}>',
        f'  <testsuite name="trainwreck" {head}>',
        *(_case(f) for f in result.findings),
    ]
    if not result.findings:
        rows.append('    <testcase name="check" classname="trainwreck"/>')
    return "\n".join([*rows, "  </testsuite>", "</testsuites>"]) + "\n"


def _case(finding: Finding) -> str:
    cell = f"cell {finding.cell}, " if finding.cell is not None else ""
    text = f"{cell}line {finding.line}, column {finding.column}: {_plain(finding.message)}"
    kind = "error" if finding.sign == "unreadable" else "failure" if finding.severity != "suggestion" else "system-out"
    head = f"    <testcase name={_attribute(finding.id)} classname={_attribute(finding.path)}"
    head += f' file={_attribute(finding.path)} line="{finding.line}">'
    about = "" if kind == "system-out" else f' type="{finding.severity}" message={_attribute(finding.message)}'
    return f"{head}<{kind}{about}>{escape(text)}</{kind}></testcase>"


def _plain(text: str) -> str:
    return encodable(line(text, 1000))


def _attribute(text: str) -> str:
    return quoteattr(_plain(text))
