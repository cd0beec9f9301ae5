"""The recording on disk: what was written comes back, torn blocks are left out, the size stays below its cap."""

from __future__ import annotations

import contextlib
import math
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwreck.collect import collect
from trainwreck.core.run import Run
from trainwreck.record.inside import thinning
from trainwreck.record.inside.store import MAGIC, MISSING, Store
from trainwreck.runs import witness

SRC = Path(__file__).parent.parent.parent / "src"


def opened(folder: Path) -> Run:
    runs = witness(collect([folder]).sources).runs
    return next(run for run in runs if run.format == "trainwreck-recording")


def test_numbers_come_back_as_they_were(tmp_path: Path) -> None:
    store = Store(str(tmp_path), {})
    values = [0.1, math.nan, math.inf, -math.inf, 1e-300, 3.0]
    for step, value in enumerate(values, 1):
        store.row("steps", {"step": step, "loss": value} if step != 5 else {"step": step, "lr": 0.5})
    store.flush()
    store.event("note", "something", 3, module="a.b", value="x")
    store.close()
    run = opened(tmp_path)
    assert list(run.series["loss"].steps) == [1, 2, 3, 4, 6]
    assert str(list(run.series["loss"].values)) == str([0.1, math.nan, math.inf, -math.inf, 3.0])
    assert list(run.series["lr"].values) == [0.5]
    assert [(e.kind, e.where.module, e.where.step) for e in run.events] == [("note", "a.b", 3)]


def test_missing_is_no_ordinary_nan() -> None:
    import struct

    assert math.isnan(MISSING)
    assert struct.pack("<d", MISSING) != struct.pack("<d", math.nan)


def test_a_torn_or_damaged_block_costs_itself_only(tmp_path: Path) -> None:
    store = Store(str(tmp_path), {})
    for step in range(1, 101):
        store.row("steps", {"step": step, "loss": 1 / step})
        if step % 10 == 0:
            store.flush()
    store.close()
    file = tmp_path / "rank0.twr"
    whole = file.read_bytes()
    draw = random.Random(0)
    for _ in range(40):
        file.write_bytes(whole[: draw.randrange(8, len(whole))])
        run = opened(tmp_path)
        count = len(run.series["loss"]) if run.series else 0
        assert count % 10 == 0
        damaged = bytearray(whole)
        damaged[draw.randrange(8, len(whole))] ^= 0xFF
        file.write_bytes(bytes(damaged))
        assert len(opened(tmp_path).series["loss"]) >= 80


@pytest.mark.parametrize("steps", [60_000])
def test_the_size_stays_below_its_cap_and_spikes_survive(steps: int, tmp_path: Path) -> None:
    cap = 200_000
    store = Store(str(tmp_path), {}, max_bytes=cap)
    draw = random.Random(1)
    largest = 0
    for step in range(1, steps + 1):
        loss = 1000.0 if step == 777 else math.nan if step == 55_555 else draw.random()
        store.row("steps", {"step": step, "loss": loss, "lr": 1e-3, "grad_norm": draw.random()})
        if step % 100 == 0:
            store.flush()
            largest = max(largest, sum(p.stat().st_size for p in tmp_path.glob("rank0.twr*")))
    store.close()
    assert largest <= cap
    loss_series = opened(tmp_path).series["loss"]
    points = dict(zip(loss_series.steps, loss_series.values, strict=True))
    assert points[777] == 1000.0
    assert math.isnan(points[55_555])
    assert loss_series.steps[0] < 40
    assert loss_series.steps[-1] == steps
    assert list(loss_series.steps) == sorted(loss_series.steps)
    late = [s for s in loss_series.steps if s > steps - 500]
    assert len(late) >= 400  # the newest part is kept whole


def test_thinning_takes_many_flushes_and_loses_nothing_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "PIECE_SECONDS", 0.0)
    store = Store(str(tmp_path), {}, max_bytes=200_000)
    under_way = 0
    for step in range(1, 20_001):
        store.row("steps", {"step": step, "loss": (step * 7919 % 1000) / 999})
        store.row("modules", {"step": step, "a.zero": step / 3})
        if step % 20 == 0:
            store.flush()
            under_way += (tmp_path / "rank0.twr.new").exists()
    assert under_way > 100
    assert sum(store._sizes.values()) + len(MAGIC) == (tmp_path / "rank0.twr").stat().st_size
    store.close()
    assert not (tmp_path / "rank0.twr.new").exists()
    series = opened(tmp_path).series
    for name, right in (("loss", lambda s: (s * 7919 % 1000) / 999), ("modules/a.zero", lambda s: s / 3)):
        steps = list(series[name].steps)
        assert steps == sorted(set(steps))
        assert steps[-300:] == list(range(19_701, 20_001))
        assert all(v == right(s) for s, v in zip(steps, series[name].values, strict=True))


def test_a_full_disk_costs_the_rows_that_did_not_fit(tmp_path: Path) -> None:
    store = Store(str(tmp_path), {})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        for step in range(1, 61):
            limit = 1500 if 20 < step <= 40 else before[0]
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
            store.row("steps", {"step": step, "loss": math.sin(step), "lr": math.cos(step)})
            with contextlib.suppress(OSError):
                store.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    store.close()
    steps = list(opened(tmp_path).series["loss"].steps)
    assert steps[:8] == list(range(1, 9))
    assert steps[-20:] == list(range(41, 61))
    assert 30 not in steps


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from trainwreck.record.inside.store import Store
store = Store(sys.argv[2], {}, max_bytes=60_000)
print("ready", flush=True)
step = 0
while True:
    for _ in range(20):
        step += 1
        store.row("steps", {"step": step, "loss": (step * 7919 % 1000) / 999})
    store.flush()
"""


def test_a_kill_at_any_moment_leaves_a_recording_that_opens(tmp_path: Path) -> None:
    draw = random.Random(2)
    for number in range(24):
        folder = tmp_path / str(number)
        words = [sys.executable, "-c", WRITER, str(SRC), str(folder)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(draw.random() * 0.12)
            writer.kill()
        series = opened(folder).series.get("loss") if (folder / "rank0.twr").exists() else None
        if series is not None:
            assert list(series.steps) == sorted(series.steps)
            assert all(v == (s * 7919 % 1000) / 999 for s, v in zip(series.steps, series.values, strict=True))


def test_a_second_process_does_not_overwrite_the_first(tmp_path: Path) -> None:
    for _ in range(2):
        store = Store(str(tmp_path), {})
        store.row("steps", {"step": 1, "loss": 1.0})
        store.flush()
        store.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rank0.2.jsonl", "rank0.2.twr", "rank0.jsonl", "rank0.twr"]
