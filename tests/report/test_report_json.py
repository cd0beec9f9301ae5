"""The published object: its schema, its bytes, the package of the skill."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import report_samples as samples

from trainwreck import report
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.results import Result, Suspect, Symptom
from trainwreck.report.json import schema

KINDS = {"silent": samples.silent, "crash": samples.crash, "healthy": samples.healthy, "partial": samples.partial}


def validate(answer: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema comes with the test extra")
    jsonschema.Draft202012Validator(json.loads(schema())).validate(answer)


def objects(node: Any) -> list[dict[str, Any]]:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    found = [node] if isinstance(node, dict) and node.get("type") == "object" else []
    return found + [o for item in inner for o in objects(item)]


def test_the_schema_is_valid_and_closed() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema comes with the test extra")
    loaded = json.loads(schema())
    jsonschema.Draft202012Validator.check_schema(loaded)
    assert all("additionalProperties" in o for o in objects(loaded))


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_fulfils_the_schema(kind: str) -> None:
    validate(json.loads(report.render(KINDS[kind](), "json")))


def test_the_schema_refuses_what_the_contract_does_not_name() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema comes with the test extra")
    check = jsonschema.Draft202012Validator(json.loads(schema()))
    answer = json.loads(report.render(samples.silent(), "json"))
    assert not check.is_valid({**answer, "extra": 1})
    answer["root_causes"][0]["confidence"] = 1.2
    assert not check.is_valid(answer)


def test_same_answer_same_bytes_and_no_bare_nan() -> None:
    one, two = (report.render(samples.silent(), "json") for _ in range(2))
    assert one == two

    def refuse(word: str) -> None:
        raise AssertionError(word)

    answer = json.loads(one, parse_constant=refuse)
    assert answer["root_causes"][0]["evidence"][2]["value"] == "nan"


def test_values_that_json_cannot_hold_are_written_all_the_same() -> None:
    odd = Evidence("a-sign", "direct", "lone \udc80 surrogate", Where("log", path="bad\udcff.log", line=1), 10**30)
    validate(json.loads(report.render(Result(suspects=(Suspect("why?", None, "undecided", (odd,)),)), "json")))


def test_json_lines_are_one_object_a_line() -> None:
    rows = [json.loads(row) for row in report.render(samples.silent(), "jsonl").splitlines()]
    assert [row["kind"] for row in rows] == ["root_causes"] * 3 + ["findings", "symptoms", "summary"]


def test_hidden_characters_are_escapes_in_json_and_lose_nothing() -> None:
    text = "a\u202eb\x9b31mc\x7f\u2028"
    written = report.render(Result(symptoms=(Symptom("a-sign", text, Where("log")),)), "json")
    assert not set(written) & set("\u202e\x9b\x7f\u2028")
    assert json.loads(written)["symptoms"][0]["text"] == text


def test_the_package_has_the_shape_of_the_skill() -> None:
    answer = json.loads(report.render(samples.silent(), "package"))
    assert answer["status"] == "diagnosis_complete"
    assert set(answer) >= {"status", "root_causes", "quick_fixes", "analysis_artifacts"}
    first = answer["root_causes"][0]
    assert first["issue"] == "Learning rate too high"
    assert all(isinstance(text, str) for text in first["evidence"])
    assert first["confidence"] == 0.93
    for part in ("Expected:", "Verify:", "If ineffective:"):
        assert part in first["fix"]


def test_an_unsure_package_asks_for_more() -> None:
    answer = json.loads(report.render(samples.partial(), "package"))
    assert answer["status"] == "diagnosis_partial"
    assert answer["requested_artifacts"]


@pytest.mark.parametrize(
    ("form", "refused"), [("json", ("rich", "jinja2", "numpy")), ("concise", ("rich", "jinja2")), ("full", ("jinja2",))]
)
def test_a_format_loads_only_what_it_needs(form: str, refused: tuple[str, ...]) -> None:
    program = f"""
import sys
from trainwreck import report
from trainwreck.core.results import Result
report.render(Result(), {form!r})
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {m.split(".")[0] for m in done.stdout.split()} & set(refused)
