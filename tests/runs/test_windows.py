"""Long texts are read in pieces: nothing of a short one is left out, and of a long one no marked piece."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainwreck.core.source import from_bytes
from trainwreck.runs.console import windows
from trainwreck.runs.console.read import read


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "PIECE", 1 << 10)
    monkeypatch.setattr(windows, "DENSE", 16 << 10)
    monkeypatch.setattr(windows, "TAIL", 4 << 10)


def _log(steps: int, nan_at: int = -1) -> bytes:
    lines = (f"step {i} loss {'nan' if i == nan_at else 9 / (i + 1):}" for i in range(steps))
    return "\n".join(lines).encode()


def test_all_of_a_short_text() -> None:
    data = _log(30_000)
    assert b"".join(piece for _, piece in windows.Windows(io.BytesIO(data)).pieces()) == data


@pytest.mark.usefixtures("short")
def test_line_numbers_and_both_ends() -> None:
    data = _log(40_000)
    reader = windows.Windows(io.BytesIO(data))
    lines = data.decode().split("\n")
    seen = list(from_bytes("a.log", data).lines_of(reader.pieces()))
    assert reader.skipped > len(data) // 2
    assert all(lines[number - 1] == text for number, text in seen)
    assert (seen[0].number, seen[-1].number) == (1, len(lines))


@pytest.mark.usefixtures("short")
def test_a_nan_in_the_middle_is_seen() -> None:
    (run,) = read(from_bytes("a.log", _log(40_000, nan_at=31_234)))
    series = run.series["loss"]
    assert [step for step, value in zip(series.steps, series.values, strict=True) if value != value] == [31_234]
    assert any("left out" in note for note in run.notes)


@pytest.mark.usefixtures("short")
def test_epochs_that_pass_in_a_gap_stay_on_the_axis() -> None:
    text = "\n".join(f"epoch {i // 700} step {i % 700} loss {9 / (i + 1):.5f}" for i in range(40_000))
    (run,) = read(from_bytes("a.log", text.encode()))
    steps = run.series["loss"].steps
    assert run.attempt == run.of_attempts == 1
    assert list(steps) == sorted(steps)
    assert abs(steps[-1] - 40_000) < 400


@pytest.mark.usefixtures("short")
def test_one_line_without_an_end() -> None:
    data = b"step 1 loss 0.5 " * 20_000
    assert b"".join(piece for _, piece in windows.Windows(io.BytesIO(data)).pieces()) == data


def test_json_loads_no_renderer(tmp_path: Path) -> None:
    """Start-up is told by the modules loaded, not by a clock: no renderer for JSON, no numpy without a curve."""
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x\n'
    (tmp_path / "err.log").write_text(text)
    program = (
        "import sys, json\n"
        "from trainwreck.cli import main\n"
        "sys.argv = ['trainwreck', 'diagnose', sys.argv[1], '--format', 'json', '-o', sys.argv[1] + '/out.json']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    for name, banned in (("err.log", {"numpy"}), ("", set())):
        if not name:
            (tmp_path / "err.log").write_bytes(_log(300))
        told = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        ).stdout
        loaded = set(json.loads(told.strip().splitlines()[-1]))
        assert not loaded & ({"rich", "jinja2", "yaml", "matplotlib", "torch", "pandas"} | banned)
        assert len(loaded) < 1200  # 540 of them rules and their families, 115 numpy, 50 the rehearsal
