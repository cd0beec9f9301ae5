"""TensorBoard event files, W&B files and MLflow stores, also as their own packages write them."""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.runs.helpers import kinds, of_directory, one, read

from trainwreck.collect import collect
from trainwreck.core.run import Run
from trainwreck.runs.witness import witness


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def event(step: int, tag: str, value: float, wall: float = 1.7e9) -> bytes:
    body = field(5, field(1, field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)))
    data = b"\x09" + struct.pack("<d", wall) + (b"\x10" + varint(step) if step else b"") + body
    return struct.pack("<QI", len(data), 0) + data + b"\0\0\0\0"


def events(points: list[tuple[int, str, float]], start: float = 1.7e9) -> bytes:
    data = b"\x09" + struct.pack("<d", start) + field(3, b"brain.Event:2")
    return struct.pack("<QI", len(data), 0) + data + b"\0\0\0\0" + b"".join(event(*p, wall=start + 1) for p in points)


NAME = "events.out.tfevents.1700000000.host.1.0"


def test_scalars_of_the_first_generation() -> None:
    run = one(NAME, events([(s, "train/loss", 2.0 / (s + 1)) for s in range(300)]))
    assert list(run.series["train/loss"].steps) == list(range(300))
    assert run.series["train/loss"].role == "loss"


def test_a_cut_last_record_is_normal() -> None:
    whole = events([(s, "loss", 1.0) for s in range(10)])
    run = one(NAME, whole[:-9])
    assert len(run.series["loss"]) == 9
    assert any("ends within a record" in note for note in run.notes)


def test_a_file_without_scalars_is_a_start() -> None:
    (run,) = read(NAME, events([]))
    assert not run.series


def test_steps_that_start_again_within_a_file() -> None:
    points = [(s, "loss", 1.0 - s / 100) for s in range(20)] * 2
    runs = read(NAME, events(points))
    assert [run.of_attempts for run in runs] == [2, 2]


def test_reading_is_fast() -> None:
    data = events([(s, f"train/metric_{t}", 0.5) for s in range(5000) for t in range(20)])
    began = time.process_time()
    (run,) = read(NAME, data)
    spent = time.process_time() - began
    assert len(run.series) == 20
    assert spent < 1.2, "100,000 scalars took about 0.25 CPU seconds when this was written"


def test_starts_in_one_directory(tmp_path: Path) -> None:
    first = events([(s, "loss", 3 - s / 10) for s in range(0, 20)], 1.7e9)
    resumed = events([(s, "loss", 3 - s / 10) for s in range(15, 30)], 1.7e9 + 5000)
    again = events([(s, "loss", 5 - s / 10) for s in range(0, 10)], 1.7e9 + 9000)
    files = {
        f"run/events.out.tfevents.17{i:08d}.h.1.0": data for i, data in enumerate([first, resumed, again, events([])])
    }
    runs = [run for run in of_directory(tmp_path, files).runs if run.series]
    assert [(run.attempt, run.of_attempts) for run in runs] == [(1, 2), (2, 2)]
    assert list(runs[0].seams) == [15]
    assert list(runs[0].series["loss"].steps) == list(range(30))
    assert {"aborted-starts", "many-attempts"} <= kinds(runs[1])


def test_keras_writes_two_directories(tmp_path: Path) -> None:
    train = events([(s, "epoch_loss", 1.0 / (s + 1)) for s in range(6)])
    validation = events([(s, "epoch_loss", 1.2 / (s + 1)) for s in range(6)])
    (run,) = of_directory(tmp_path, {f"logs/train/{NAME}": train, f"logs/validation/{NAME}": validation}).runs
    assert {s.role for s in run.series.values()} == {"loss", "eval-loss"}


def test_a_file_of_torch(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="torch and tensorboard are not installed")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        for step in range(50):
            writer.add_scalar("loss/train", math.nan if step == 7 else 1.0 / (step + 1), step)
            writer.add_scalar("acc", step / 50, step, new_style=True)
        writer.add_text("config", "lr: 0.1")
        writer.add_histogram("weights", __import__("numpy").arange(10.0), 1)
    (run,) = witness(collect([tmp_path]).sources).runs
    assert len(run.series["loss/train"]) == len(run.series["acc"]) == 50
    assert math.isnan(run.series["loss/train"].values[7])
    assert run.series["acc"].values[25] == pytest.approx(0.5)


WANDB = """
import wandb, sys
run = wandb.init(mode="offline", project="p", dir=sys.argv[1], config={"lr": 0.001, "opt": {"name": "adam"}})
for i in range(40):
    run.log({"train/loss": 2.0 / (i + 1) if i != 7 else float("nan"), "nested": {"a": float(i)}})
if sys.argv[2] == "crash":
    raise RuntimeError("boom")
run.finish()
"""


@pytest.mark.parametrize(("end", "outcome", "code"), [("finish", "completed", 0), ("crash", "crashed", 1)])
def test_a_run_of_wandb(tmp_path: Path, end: str, outcome: str, code: int) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    environment = os.environ | {"WANDB_SILENT": "true", "HOME": str(tmp_path), "WANDB_CONSOLE": "off"}
    subprocess.run(
        [sys.executable, "-c", WANDB, str(tmp_path), end],
        env=environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    found = collect([tmp_path / "wandb"])
    assert not any("debug" in source.name for source in found.sources)
    runs: list[Run] = [run for run in witness(found.sources).runs if run.format == "wandb"]
    if not runs:
        pytest.skip("wandb could not start here")
    (run,) = runs
    assert (run.outcome, run.exit_code) == (outcome, code)
    assert run.settings["opt.name"].value == "adam"
    assert len(run.series["train/loss"]) == 40
    assert math.isnan(run.series["train/loss"].values[7])


def wandb_file(records: list[bytes], junk: bytes = b"") -> bytes:
    """LevelDB log framing by hand, across blocks."""
    data = b":W&B\xbc\x01\x00"
    for record in records:
        first = True
        while True:
            left = 32_768 - len(data) % 32_768
            if left < 7:
                data += b"\0" * left
                continue
            piece, record = record[: left - 7], record[left - 7 :]
            kind = (1 if not record else 2) if first else (4 if not record else 3)
            data += struct.pack("<IHB", 0, len(piece), kind) + piece
            first = False
            if not record:
                break
    return data + junk


def history(step: int, **values: str) -> bytes:
    items = b"".join(field(1, field(2, name.encode()) + field(16, text.encode())) for name, text in values.items())
    return field(2, items + field(2, b"\x08" + varint(step)))


def test_wandb_framing_and_the_missing_exit_record() -> None:
    big = field(6, b"x" * 70_000)
    records = [history(i, loss=str(1.0 / (i + 1)), note='"text"') for i in range(3)] + [big, history(3, loss='"NaN"')]
    (killed,) = read("run-ab.wandb", wandb_file(records))
    assert killed.outcome == "unfinished"
    assert list(killed.series["loss"].steps) == [0, 1, 2, 3]
    assert math.isnan(killed.series["loss"].values[3])
    (stopped,) = read("run-ab.wandb", wandb_file([*records, field(18, b"\x08" + varint(255))]))
    assert (stopped.outcome, stopped.exit_code) == ("interrupted", 255)
    assert len(read("run-ab.wandb", wandb_file(records, b"\x12\x34"))[0].series["loss"]) == 4


def test_mlflow_store(tmp_path: Path) -> None:
    top = f"mlruns/0/{'a1' * 16}"
    files = {
        f"{top}/meta.yaml": "run_id: a1\nstatus: 4\nend_time: null\n",
        f"{top}/metrics/loss": "".join(f"17000000000{i:02d} {2.0 / (i + 1)} {i}\n" for i in range(12)),
        f"{top}/metrics/val/acc": "1700000000000 0.5 0\n1700000000001 0.6 5 0 none\n",
        f"{top}/params/lr": "0.01",
        f"{top}/tags/mlflow.user": "me",
    }
    (run,) = of_directory(tmp_path, files).runs
    assert run.outcome == "crashed"
    assert list(run.series["loss"].steps) == list(range(12))
    assert run.series["val/acc"].role == "eval-metric"
    assert run.settings["lr"].value == "0.01"


def test_add_scalars_makes_directories_of_one_run(tmp_path: Path) -> None:
    files = {
        f"exp/Loss_{split}/{NAME}": events([(s, "Loss", k / (s + 1)) for s in range(8)])
        for split, k in (("train", 1.0), ("val", 1.3))
    }
    files[f"exp/{NAME}"] = events([(s, "lr", 0.1) for s in range(8)])
    (run,) = of_directory(tmp_path, files).runs
    assert {s.name: s.role for s in run.series.values()} == {
        "train/Loss": "loss",
        "val/Loss": "eval-loss",
        "lr": "lr",
    }
