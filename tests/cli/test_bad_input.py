"""Bad input gets one clear sentence, the right exit code, and never a traceback; the rest is still read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import command

GOOD = "step,loss\n" + "".join(f"{i},{3.0 / (i + 1) + 0.4:.4f}\n" for i in range(50))


def trainwreck(*arguments: str, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return command(cwd, *arguments, stdin=stdin)


def sentence(done: subprocess.CompletedProcess[bytes]) -> str:
    assert b"Traceback" not in done.stderr
    lines = done.stderr.decode().strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_a_missing_path_is_told_and_exits_2(tmp_path: Path) -> None:
    done = trainwreck("diagnose", "nowhere/run1", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere/run1" in sentence(done)


def test_an_empty_directory_is_told_and_exits_2(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    done = trainwreck("diagnose", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "run: the directory is empty" in sentence(done)


def test_no_path_at_all_is_a_usage_error() -> None:
    done = trainwreck("diagnose")
    assert done.returncode == 2
    assert b"name a run directory" in done.stderr


def test_a_link_into_itself_is_told(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    done = trainwreck("diagnose", "loop", cwd=tmp_path)
    assert done.returncode == 2
    assert "loop" in sentence(done)


def test_a_directory_that_contains_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/metrics.csv").write_text(GOOD)
    (tmp_path / "run/again").symlink_to(tmp_path / "run", target_is_directory=True)
    done = trainwreck("diagnose", "run", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["runs"]) == 1


def test_a_pipe_without_writer_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = trainwreck("diagnose", "pipe", cwd=tmp_path)
    assert done.returncode == 2
    assert "pipe" in sentence(done)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("loss 1.0")
    (tmp_path / "train.log").chmod(0)
    done = trainwreck("diagnose", "train.log", cwd=tmp_path)
    assert done.returncode == 2
    assert "permission" in sentence(done).lower()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("junk.bin", bytes(range(256)) * 64),
        ("half.json", b'{"log_history": [{"loss": 1.0, "step": 1}, {"lo'),
        ("zero.log", b""),
        ("nul.log", b"\0" * 5000),
        ("broken.gz", b"\x1f\x8b\x08\x00garbage"),
        ("events.out.tfevents.1.host", b"\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7fK\x22\t\x00\x00"),
        ("run-x.wandb", b":W&B\x21\xbe\x00" + b"\xff" * 100),
        ("config.yaml", b"a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b]\n" * 3),
        ("tags.yaml", b"!!python/object/apply:os.system ['touch /tmp/trainwreck-owned']\n"),
        ("script.py", b"def broken(:\n"),
    ],
)
def test_a_bad_file_does_not_stop_the_others(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "metrics.csv").write_text(GOOD)
    done = trainwreck("diagnose", ".", "--format", "json", cwd=tmp_path)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert any("loss" in run["metrics"] for run in answer["runs"])
    assert not Path("/tmp/trainwreck-owned").exists()


def test_what_could_not_be_read_is_told_in_the_answer(tmp_path: Path) -> None:
    (tmp_path / "junk.bin").write_bytes(os.urandom(4096))
    (tmp_path / "metrics.csv").write_text(GOOD)
    answer = json.loads(trainwreck("diagnose", "metrics.csv", "gone.log", "--format", "json", cwd=tmp_path).stdout)
    assert answer["status"] == "partial"
    assert any("gone.log" in f["message"] for f in answer["findings"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    text = "é\n" + "".join(f"epoch {i} loss {2.0 / (i + 1):.4f}\n" for i in range(30))
    (tmp_path / "train.log").write_bytes(text.encode(encoding))
    answer = json.loads(trainwreck("diagnose", "train.log", "--format", "json", cwd=tmp_path).stdout)
    assert answer["runs"]
    assert "loss" in answer["runs"][0]["metrics"]


def test_an_unknown_id_names_the_nearest() -> None:
    done = trainwreck("explain", "labels-all-ignord")
    assert done.returncode == 2
    assert "did you mean labels-all-ignored" in sentence(done)


def test_a_report_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(GOOD)
    done = trainwreck("diagnose", "metrics.csv", "-o", "no/such/dir/report.html", cwd=tmp_path)
    assert done.returncode == 2
    assert "report.html" in sentence(done)


def test_our_own_fault_is_one_line_and_a_report_file(tmp_path: Path) -> None:
    program = (
        "import sys, trainwreck.engine as e, trainwreck.cli as c\n"
        "e.diagnose = lambda *a, **k: 1 / 0\n"
        "sys.argv[1:] = ['diagnose', '.']\n"
        "c.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 3
    line = sentence(done)
    report = Path(line.rsplit(" ", 1)[1])
    assert "ZeroDivisionError" in report.read_text()
    report.unlink()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("{", "no valid JSON"), ("[]", "artifacts"), ('{"artifacts": {}}', "names no file")],
)
def test_a_wrong_context_package_is_told(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "context.json").write_text(content)
    done = trainwreck("diagnose", "--package", "context.json", cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in sentence(done)


def test_a_context_package_is_diagnosed(tmp_path: Path) -> None:
    (tmp_path / "losses.csv").write_text(GOOD)
    package = {"artifacts": {"loss_curves": "losses.csv"}, "symptoms": ["loss is always zero, all labels are masked"]}
    (tmp_path / "context.json").write_text(json.dumps(package))
    done = trainwreck("diagnose", "--package", "context.json", "--format", "json", cwd=tmp_path)
    assert done.returncode in (0, 1)
    assert json.loads(done.stdout)["runs"]
