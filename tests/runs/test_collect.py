"""Bad input: one sentence each, everything else still read, never a traceback, never a hang."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest

from trainwreck import collect as module
from trainwreck.collect import Collected, collect
from trainwreck.core.source import Source
from trainwreck.runs.witness import witness

TEXT = b"epoch,loss,val_loss\n" + b"".join(b"%d,%f,%f\n" % (e, 1 / (e + 1), 1.2 / (e + 1)) for e in range(2000))


def reason(found: Collected) -> str:
    assert len(found.unreadable) == 1, found.unreadable
    text = found.unreadable[0].reason
    assert "\n" not in text
    assert not text.endswith(".")
    return text


def test_missing_path() -> None:
    assert "no such file" in reason(collect(["/nowhere/at/all"]))


def test_a_path_that_is_none() -> None:
    assert reason(collect(["a\0b"]))
    assert "too long" in reason(collect(["x" * 5000]))


def test_empty_directory_and_empty_file(tmp_path: Path) -> None:
    assert "is empty" in reason(collect([tmp_path]))
    (tmp_path / "log.txt").touch()
    assert "only 1 binary or empty" in reason(collect([tmp_path]))
    assert "the file is empty" in reason(collect([tmp_path / "log.txt"]))


def test_nothing_on_standard_input() -> None:
    assert "nothing came in" in reason(collect(["-"], stdin=b""))


def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in reason(collect([tmp_path / "pipe"]))
    assert "no regular file" in reason(collect([tmp_path]))


def test_links(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "leads nowhere" in reason(collect([tmp_path / "loop"]))
    real = tmp_path / "real"
    real.mkdir()
    (real / "log.csv").write_bytes(TEXT)
    (real / "again").symlink_to(real)
    (tmp_path / "latest").symlink_to(real)
    found = collect([tmp_path])
    assert [Path(source.name).parent.name for source in found.sources] == ["real"]


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(TEXT)
    true = module._open

    def refuse(path: Path) -> object:
        if path.name == "a.csv":
            raise PermissionError(13, "Permission denied", str(path))
        return true(path)

    monkeypatch.setattr(module, "_open", refuse)
    found = collect([tmp_path])
    assert "permission denied" in reason(found)
    assert [Path(source.name).name for source in found.sources] == ["b.csv"]


def test_binary_junk(tmp_path: Path) -> None:
    junk = bytes(range(256)) * 40
    (tmp_path / "junk.xyz").write_bytes(junk)
    assert "only 1 binary" in reason(collect([tmp_path]))
    assert "binary content" in reason(collect([tmp_path / "junk.xyz"]))


def _zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    return bytes(zstandard.ZstdCompressor().compress(data))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, _zstd], ids=["gz", "bz2", "xz", "zst"])
def test_compressed_whole_cut_off_and_damaged(tmp_path: Path, pack: object) -> None:
    packed: bytes = pack(TEXT)  # type: ignore[operator]
    path = tmp_path / "log.csv.packed"
    path.write_bytes(packed)
    (source,) = collect([path]).sources
    assert source.text().encode() == TEXT
    path.write_bytes(packed[: len(packed) * 2 // 3])
    found = collect([path])
    assert found.sources or found.unreadable
    for part in found.sources:
        assert TEXT.startswith(part.text().encode())
    path.write_bytes(packed[:8] + bytes(200))
    assert "damaged" in reason(collect([path]))


def test_standard_input_may_be_compressed_and_large(monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = collect(["-"], stdin=gzip.compress(TEXT)).sources
    assert source.text().encode() == TEXT
    monkeypatch.setattr(module, "STDIN_IN_MEMORY", 1000)
    (spooled,) = collect(["-"], stdin=TEXT).sources
    assert spooled.text().encode() == TEXT
    assert sum(1 for _ in spooled.lines()) == 2001


def test_remote_addresses(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    memory.pipe("/runs/a/log.csv.gz", gzip.compress(TEXT))
    memory.pipe("/runs/a/model.pt", b"\0" * 10)
    found = collect(["memory://runs/a"])
    assert [source.name for source in found.sources] == ["memory://runs/a/log.csv.gz"]
    assert found.sources[0].text().encode() == TEXT
    assert reason(collect(["memory://runs/nothing"]))
    assert reason(collect(["nosuchscheme://a/b"]))


def test_wrong_encodings_still_give_numbers(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-8-sig", "latin-1"):
        text = "époque,loss,epoch\n" + "".join(f"a,{1 / (e + 1)},{e}\n" for e in range(9))
        (tmp_path / f"{encoding}.csv").write_bytes(text.encode(encoding))
    seen = witness(collect([tmp_path]).sources)
    assert len([run for run in seen.runs if run.series]) == 3 or len(seen.runs) == 1  # the same values: one run
    assert not seen.unreadable


def test_wandb_logs_about_itself_are_left_out(tmp_path: Path) -> None:
    logs = tmp_path / "wandb" / "run-20250101_000000-abc" / "logs"
    logs.mkdir(parents=True)
    (logs / "debug-internal.log").write_text("Traceback (most recent call last):\nOSError: no\n")
    (logs.parent / "output.log").write_text("loss: 1.0\n")
    assert [Path(source.name).name for source in collect([tmp_path]).sources] == ["output.log"]
    assert collect([logs / "debug-internal.log"]).sources


def test_a_damaged_file_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text('{"log_history": [')
    (tmp_path / "log.csv").write_bytes(TEXT)
    seen = witness(collect([tmp_path]).sources)
    assert len(seen.runs) == 1
    assert len(seen.unreadable) == 1
    assert "breaks off" in seen.unreadable[0].reason


def test_a_stream_that_fails_midway_is_one_sentence() -> None:
    def broken() -> object:
        raise OSError(5, "Input/output error")

    source = Source("a.csv", broken, TEXT[:500], len(TEXT))  # type: ignore[arg-type]
    seen = witness([source])
    assert "nput/output error" in seen.unreadable[0].reason
