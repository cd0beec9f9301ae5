"""From a log to signs: places in the user's files, inner causes before echoes, prose, and what stays silent."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from trainwreck.core.evidence import Evidence
from trainwreck.core.failure import Failure
from trainwreck.core.program import Module, Program
from trainwreck.core.source import Source, from_bytes
from trainwreck.failures import witness
from trainwreck.failures.excerpts import excerpts
from trainwreck.failures.signatures import clip, in_failure, signature_from

SIGNATURES: list[dict[str, Any]] = [
    {
        "sign": "shape",
        "contains": ["cannot be multiplied"],
        "pattern": r"\((?P<rows>\d+)x(?P<got>\d+)",
        "text": "got {got}",
    },
    {"sign": "oob", "contains": ["out of bounds"], "type": ["IndexError"]},
    {"sign": "launcher", "contains": ["ChildFailedError"], "echo": True},
    {"sign": "skip", "contains": ["Gradient overflow"], "scope": "line"},
    {"sign": "words", "contains": ["nan"], "all": [r"\bnan\b", "norm"], "scope": "report"},
]
CODE = "import torch\n\n\ndef main():\n    out = model(x)\n\n\nmain()\n"
LOG = (
    'Traceback (most recent call last):\n  File "/old/place/proj/train.py", line 8, in <module>\n    main()\n'
    '  File "/old/place/proj/train.py", line 5, in main\n    out = model(x)\n'
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 768x10)\n"
)


def program(text: str = CODE, path: str = "proj/train.py") -> Program:
    return Program({path: Module(path, text, ast.parse(text), text.splitlines())})


def signs(
    *texts: str, name: str = "train.log", code: Program | None = None, reports: tuple[str, ...] = ()
) -> list[Evidence]:
    sources: list[Source] = [from_bytes(name, text.encode()) for text in texts]
    return list(witness(sources, SIGNATURES, program=code, reports=reports).evidence)


def test_sign_lies_at_the_local_line_with_named_values() -> None:
    found = {e.sign: e for e in signs(LOG, code=program())}
    assert found["shape"].value == {"rows": 4, "got": 512}
    assert found["shape"].text == "got 512"
    assert (found["shape"].where.kind, found["shape"].where.path, found["shape"].where.line) == (
        "code",
        "proj/train.py",
        5,
    )
    assert "crash-traceback" in found


def test_file_that_was_edited_since_is_found_by_its_line() -> None:
    edited = program("# a new comment\n\n" + CODE)
    where = next(e.where for e in signs(LOG, code=edited) if e.sign == "shape")
    assert where.line == 7


def test_renamed_file_is_found_by_its_line() -> None:
    where = next(e.where for e in signs(LOG, code=program(path="other.py")) if e.sign == "shape")
    assert (where.path, where.line) == ("other.py", 5)


def test_without_the_code_the_printed_place_is_told() -> None:
    where = next(e.where for e in signs(LOG) if e.sign == "shape")
    assert (where.path, where.line) == ("/old/place/proj/train.py", 5)


def test_type_must_fit() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: x is out of bounds\n'
    assert "oob" not in {e.sign for e in signs(text)}
    assert "oob" in {e.sign for e in signs(text.replace("ValueError", "IndexError"))}


def test_echo_is_weaker_beside_its_cause() -> None:
    text = (
        LOG
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + (
            'Traceback (most recent call last):\n  File "/opt/lib/python3.10/site-packages/t/run.py", line 1, in main\n'
            "    run()\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: x\n"
        )
    )
    found = {e.sign: e.cls for e in signs(text)}
    assert found["shape"] == "direct"
    assert found["launcher"] == "circumstantial"


def test_line_signs_come_from_any_log_line() -> None:
    text = "".join(f"step {n} loss 1.0\n" for n in range(50)) + "Gradient overflow. Skipping step\n"
    found = [e for e in signs(text) if e.sign == "skip"]
    assert [e.where.line for e in found] == [51]


def test_prose_is_matched_without_case_only_in_reports() -> None:
    words = "The NORM of a zero vector gives NaN gradients"
    assert [e.sign for e in signs(words, name="<stdin>")] == ["words"]
    assert [e.sign for e in signs(reports=(words,))] == ["words"]
    assert signs(words, name="train.log") == []


def test_program_files_and_tables_are_no_logs() -> None:
    for name in ("train.py", "notes.md", "metrics.csv", "config.yaml"):
        assert signs(LOG, name=name) == []


def test_healthy_log_gives_nothing() -> None:
    text = "".join(f"epoch {n} | loss {1 / (n + 1):.4f} | acc 0.9{n % 10}\n" for n in range(300)) + "Done.\n"
    assert signs(text) == []


def test_comparisons_between_parts() -> None:
    entry = {
        "sign": "s",
        "contains": ["size"],
        "pattern": r"size (?P<a>\d+) (?P<b>\d+)",
        "holds": ["a < b", "b - a <= 5"],
    }
    signature = signature_from(entry)
    fits = [bool(list(in_failure(Failure("E", f"size {a} {b}"), [signature]))) for a, b in [(1, 2), (2, 1), (1, 9)]]
    assert fits == [True, False, False]


def test_long_words_are_cut() -> None:
    assert len(clip("x" * 100_000)) <= 6000
    assert len(clip("Error: " + "a" * 5000 + " end")) < 400


@pytest.mark.parametrize("name", ["a.log", "<stdin>"])
def test_binary_and_empty_inputs_are_quiet(name: str) -> None:
    for data in (b"", b"\x00\x01\x02" * 100, b"\xff\xfe\xfa", b"Traceback (most recent call last):"):
        assert not witness([from_bytes(name, data)], SIGNATURES).evidence


def test_excerpts_without_causes() -> None:
    assert excerpts([], Program({}), []) == []


def test_a_note_of_the_recorder_about_itself_is_no_failure_of_the_program() -> None:
    error = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 768x10)"
    assert signs(error)
    assert not signs(f"step 3 loss 0.4\ntrainwreck: no longer recording training and evaluation data ({error})\n")
