"""Closed and full streams, odd arguments and surroundings: one sentence and its exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOG = "".join(f"step {i} loss {2 / (i + 1) + 0.5:.4f}\n" for i in range(60))
SECRETS = ("hf_abcdefghijklmnopqrstuvwxyz0123", "joe.doe@example.com")


def run(arguments: str, where: Path, **more: str) -> tuple[int, str]:
    """Exit code and all output of ``trainwreck ARGUMENTS`` run by a shell in ``where``."""
    command = f"{sys.executable} -m trainwreck {arguments}"
    environment = {**os.environ, **more}
    done = subprocess.run(
        ["bash", "-c", command], cwd=where, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=60
    )
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "good.log").write_text(LOG)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("diagnose good.log >&-", 2, "standard output is closed"),
        ("diagnose - <&-", 2, "standard input is closed"),
        ("diagnose ''", 2, "empty path"),
        ("diagnose --package deep.json", 2, "no valid JSON"),
        ("diagnose good.log -o .", 2, "cannot be written"),
        ("diagnose /dev/zero", 2, "no regular file"),
        pytest.param(
            "diagnose good.log > /dev/full",
            2,
            "No space left",
            marks=pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full"),
        ),
    ],
)
def test_one_sentence_and_its_exit_code(arguments: str, code: int, words: str, place: Path) -> None:
    status, told = run(arguments, place)
    assert (status, "Traceback" in told) == (code, False), told
    assert words in told
    assert len(told.strip().splitlines()) == 1


def test_a_file_named_in_three_ways_is_read_once(place: Path) -> None:
    status, told = run("diagnose good.log ./good.log . --format json", place)
    assert status == 0
    assert told.count('"path": "good.log"') <= 1 or told.count('"format": "console"') == 1


@pytest.mark.parametrize(
    "surroundings",
    [
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        {"COLUMNS": "1"},
        {"COLUMNS": "many", "TERM": "dumb", "NO_COLOR": "1"},
        {"HOME": "/proc", "XDG_CACHE_HOME": "/proc/none"},
        {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"},
    ],
    ids=["ascii", "narrow", "dumb", "no cache", "warnings are errors"],
)
def test_surroundings_change_no_answer(surroundings: dict[str, str], place: Path) -> None:
    status, told = run("diagnose good.log", place, **surroundings)
    assert status == 0, told
    assert "Traceback" not in told
    assert "good.log" in told


def test_a_reader_that_goes_away_is_no_error(place: Path) -> None:
    status, told = run("explain --list | head -1; exit ${PIPESTATUS[0]}", place)
    assert (status, len(told.splitlines())) == (0, 1)


@pytest.mark.parametrize("form", ["full", "concise", "json", "jsonl", "markdown", "html", "package"])
def test_no_format_quotes_a_secret(form: str, place: Path) -> None:
    key, mail = SECRETS
    (place / "bad.log").write_text(
        f"Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    login('{key}')\n"
        f"RuntimeError: CUDA out of memory. {key} of {mail}. Tried to allocate 2.00 GiB.\n"
    )
    _, told = run(f"diagnose bad.log --format {form}", place)
    assert "bad.log" in told or form == "concise"
    assert not any(secret in told for secret in SECRETS)
