"""Answers of ``check`` in the formats of other tools: the fields that those tools require, and nothing harmful."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from trainwreck import report
from trainwreck.core.results import Edit, Excerpt, Finding, Fix, Link, Result, RuleFacts

FIX = Fix("use new=", (Edit("src/a b.py", 3, 3, "f(new=1)"),), True)
FINDING = Finding(
    "a-rule", "code-a-rule", "critical", "x, y: 5% <b>\n::end", "src/a b.py", 3, 3, 3, 9,
    proof=(("conf.yaml", 7, "lr: 1"),), fix=FIX, fingerprint="00ff",
)  # fmt: skip
IN_CELL = Finding(
    "b-rule", "code-b-rule", "warning", "m", "n.ipynb", 2, cell=4,
    proof=(Link("n.ipynb", 1, "lr = 1", 3),), fix=Fix("use y", (Edit("n.ipynb", 2, 2, "y", 4),), True),
)  # fmt: skip
RESULT = Result(
    findings=(FINDING, Finding("b-rule", "code-b-rule", "suggestion", "m", "n.ipynb", 2, cell=4)),
    excerpts=(Excerpt("src/a b.py", 2, ("# é", "f(old=1)"), (3,)),),
    rules={"a-rule": RuleFacts("A rule", "because", "do this", "critical", "loss")},
    verb="check",
)


def sarif() -> Any:
    return json.loads(report.render(RESULT, "sarif"))


def test_sarif_has_what_code_scanning_reads() -> None:
    answer = sarif()
    (run,) = answer["runs"]
    assert answer["version"] == "2.1.0"
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["help"]["text"] == "because\n\nFix: do this"
    assert rule["properties"]["tags"] == ["loss"]
    first, second = run["results"]
    assert (first["ruleId"], first["level"], second["level"]) == ("a-rule", "error", "note")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "src/a%20b.py"
    assert place["region"] == {"startLine": 3, "startColumn": 3, "endLine": 3, "endColumn": 9}
    assert first["partialFingerprints"] == {"trainwreck/v1": "00ff"}
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [s["location"]["physicalLocation"]["region"]["startLine"] for s in steps] == [7, 3]
    (replacement,) = first["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"] == {"text": "f(new=1)"}
    assert second["locations"][0]["logicalLocations"] == [{"name": "cell 4", "kind": "module"}]


def test_sarif_keeps_to_its_schema() -> None:
    """The schema is the one of GitHub code scanning; an odd path, a cell, a proof and an unreadable file are in it."""
    schema = json.loads((Path(__file__).parent / "schemas/sarif-2.1.0-rtm.5.json").read_bytes())
    every = replace(RESULT, findings=(*RESULT.findings, IN_CELL), unreadable=("x.py: could not be read",))
    for result in (every, Result(verb="check")):
        answer = json.loads(report.render(result, "sarif"))
        assert [e.message for e in jsonschema.Draft4Validator(schema).iter_errors(answer)] == []


def test_what_stands_in_a_cell_is_never_told_as_a_line_of_the_file() -> None:
    result = Result(findings=(IN_CELL,), verb="check")
    (told,) = json.loads(report.render(result, "sarif"))["runs"][0]["results"]
    assert told["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert told["message"]["text"] == "cell 4, line 2: m"
    assert "fixes" not in told
    (issue,) = json.loads(report.render(result, "gitlab"))
    assert issue["location"]["positions"]["begin"] == {"line": 1, "column": 1}
    assert issue["description"] == "cell 4, line 2: m"
    for form in ("full", "markdown", "html"):
        assert "n.ipynb:cell 3:1" in report.render(result, form), form
    assert json.loads(report.render(result, "json"))["findings"][0]["proof"][0]["cell"] == 3


def test_an_annotation_cannot_break_out_of_its_command() -> None:
    first, second = report.render(RESULT, "github").splitlines()
    assert first == (
        "::error title=trainwreck (a-rule),file=src/a b.py,line=3,col=3,endLine=3,endColumn=9::x, y: 5%25 <b> ::end"
    )
    assert second == "::notice title=trainwreck (b-rule),file=n.ipynb,line=1::cell 4, line 2: m"


def test_gitlab_gives_each_issue_a_fingerprint_of_its_own() -> None:
    twice = Result(findings=(FINDING, FINDING), verb="check")
    issues = json.loads(report.render(twice, "gitlab"))
    assert len({i["fingerprint"] for i in issues}) == 2
    assert issues[0]["severity"] == "critical"
    assert issues[0]["location"]["positions"]["begin"] == {"line": 3, "column": 3}
    assert report.render(Result(verb="check"), "gitlab") == "[]\n"


def test_junit_counts_failures_and_escapes() -> None:
    suite = ET.fromstring(report.render(RESULT, "junit"))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failure = suite.find(".//failure")
    assert failure is not None
    assert "<b>" in (failure.get("message") or "")


def test_full_shows_carets_proof_and_the_fix_as_a_diff() -> None:
    rows = report.render(RESULT, "full").splitlines()
    assert rows[0] == "critical a-rule [*]: x, y: 5% <b> ::end"
    assert "3 | f(old=1)" in rows
    assert "  |   ^^^^^^" in rows
    assert "because conf.yaml:7 lr: 1" in rows
    assert rows[rows.index("    - f(old=1)") + 1] == "    + f(new=1)"
    assert "[*] 1 fixable with --fix" in rows
    assert "\x1b[1;31mcritical\x1b[0m" in report.render(RESULT, "full", color=True)
    assert report.render(RESULT, "full", unicode=False).isascii()


def test_concise_and_markdown_and_html_tell_every_finding() -> None:
    first, second = report.render(RESULT, "concise").splitlines()
    assert first == "src/a b.py:3:3: a-rule [*] critical: x, y: 5% <b> ::end"
    assert second == "n.ipynb:cell 4:2:1: b-rule suggestion: m"
    for form in ("markdown", "html"):
        text = report.render(RESULT, form)
        assert "a-rule" in text
        assert "b-rule" in text
        assert "<b>" not in text
