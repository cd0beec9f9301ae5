"""Three answers to inputs that programs really produced, byte for byte: a crash, a silent failure, a healthy run.

After a deliberate change: ``make golden``, and read the difference.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from trainwreck.report.json import schema

HERE = Path(__file__).parent
NAMES = ("crash", "healthy", "silent")


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("update_golden", HERE.parent.parent / "tools/update_golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_the_golden_one(name: str) -> None:
    assert tool().answer(name) == (HERE / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_golden_answers_fulfil_the_schema(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema comes with the test extra")
    jsonschema.Draft202012Validator(json.loads(schema())).validate(json.loads((HERE / f"{name}.json").read_bytes()))


def test_the_golden_answers_name_the_fault_that_was_made() -> None:
    first = {name: json.loads((HERE / f"{name}.json").read_bytes())["root_causes"][:1] for name in NAMES}
    assert first["crash"][0]["id"] == "label-out-of-range"
    assert first["crash"][0]["location"]["path"] == "crash/train.py"
    assert first["silent"][0]["id"] == "labels-all-ignored"
    assert first["healthy"] == []
