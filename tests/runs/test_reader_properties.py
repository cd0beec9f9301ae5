"""Whatever bytes a file holds: the witness says a sentence or gives runs, it never raises and never hangs."""

from __future__ import annotations

import json
import math
import os
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.runs.test_json_readers import END, EVALS, ROWS, state
from tests.runs.test_trackers import events, field, history, varint, wandb_file

from trainwreck.core.run import Run
from trainwreck.core.source import Source, from_bytes
from trainwreck.runs import readers
from trainwreck.runs.witness import witness

FEW = settings(
    max_examples=int(os.environ.get("TRAINWRECK_FUZZ", "150")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

SAMPLES: dict[str, bytes] = {
    "metrics.csv": b"epoch,step,train_loss,val_loss\n" + b"".join(b"%d,%d,%f,\n" % (i // 5, i, 1.5) for i in range(40)),
    "training.log": b"epoch;loss;val_loss\n" + b"".join(b"%d;%f;%f\n" % (i % 9, 1 / (i + 1), 2.0) for i in range(30)),
    "long.csv": b"step,phase,metric,value\n" + b"".join(b'%d,train,"loss",%f\n' % (i, 1 / (i + 1)) for i in range(30)),
    "0.monitor.csv": b'#{"t_start": 1.7e9}\nr,l,t\n' + b"".join(b"%f,%d,%f\n" % (i, 30, i / 2) for i in range(20)),
    "trainer_state.json": state(ROWS + EVALS + END).encode(),
    "trainer_log.jsonl": b"\n".join(b'{"current_steps": %d, "loss": 1, "lr": null}' % i for i in range(9)),
    "metrics.json": b"\n".join(b'{"iteration": %d, "total_loss": NaN, "lr": 1e-5}' % i for i in range(20)),
    "history.json": json.dumps({"loss": [1.0, 0.5], "val_loss": [1.0, math.nan]}).encode(),
    "rows.json": json.dumps([{"epoch": i, "loss": 1.0, "n": {"m": {"a": 1}}} for i in range(9)]).encode(),
    "all_results.json": b'{"epoch": 3.0, "train_loss": 0.31, "train_runtime": 12.5}',
    "config.yaml": b"lr: 0.1\nepochs: 3\nopt: &o {betas: [0.9, .nan]}\nagain: *o\nx: !!python/object:a.B {}\n",
    "config.json": b'{"lr": 0.1, "epochs": 3, "nested": {"a": [1, 2, {"b": null}]}}',
    "events.out.tfevents.1700000000.h.1.0": events([(i, tag, 1.0) for i in range(15) for tag in ("loss", "acc")]),
    "run-ab.wandb": wandb_file([history(i, loss="0.5") for i in range(9)] + [field(18, b"\x08" + varint(1))]),
    f"mlruns/0/{'ab' * 16}/metrics/loss": b"".join(b"1700000000%03d %f %d\n" % (i, 1.0, i) for i in range(20)),
    f"mlruns/0/{'ab' * 16}/meta.yaml": b"run_id: ab\nstatus: 3\n",
}  # fmt: skip


def sound(runs: list[Run]) -> None:
    for run in runs:
        assert 1 <= run.attempt <= run.of_attempts
        for name, series in run.series.items():
            assert name == series.name
            assert len(series.steps) == len(series.values) > 0
            assert series.lines is None or len(series.lines) == len(series)
            series.where(len(series) - 1).to_json()


def look(name: str, data: bytes) -> None:
    seen = witness([from_bytes(name, data)])
    sound(list(seen.runs))
    for item in seen.unreadable:
        assert item.reason
        assert "\n" not in item.reason


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_read_by_a_structured_reader(name: str) -> None:
    reader = readers.reader_for(from_bytes(name, SAMPLES[name]))
    assert reader is not None
    assert reader.STRUCTURED
    assert reader.read(from_bytes(name, SAMPLES[name]))


@FEW
@given(name=st.sampled_from(sorted(SAMPLES)), data=st.binary(max_size=400))
def test_arbitrary_bytes_under_every_name(name: str, data: bytes) -> None:
    look(name, data)


@FEW
@given(data=st.data(), name=st.sampled_from(sorted(SAMPLES)))
def test_mutated_samples(data: st.DataObject, name: str) -> None:
    raw = bytearray(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(0, len(raw) - 1)))
        action = data.draw(st.sampled_from(["flip", "cut", "insert", "double", "drop"]))
        if action == "flip" and raw:
            raw[at] = data.draw(st.integers(0, 255))
        elif action == "cut":
            del raw[at:]
        elif action == "insert":
            raw[at:at] = data.draw(st.binary(min_size=1, max_size=12))
        elif action == "double":
            raw[at:at] = raw[at : at + 200]
        else:
            del raw[at : at + data.draw(st.integers(1, 60))]
    look(name, bytes(raw))


@FEW
@given(cut=st.integers(0, 4000), name=st.sampled_from(sorted(SAMPLES)))
def test_cut_files_give_a_part_or_a_sentence(cut: int, name: str) -> None:
    look(name, SAMPLES[name][:cut])


NUMBERS = st.one_of(st.floats(width=32), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1e300, -1e-300]))


@FEW
@given(values=st.lists(NUMBERS, min_size=2, max_size=60))
def test_a_table_gives_back_what_was_written(values: list[float]) -> None:
    text = "step,loss\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(values))
    (run,) = readers.reader_for(from_bytes("a.csv", text.encode())).read(from_bytes("a.csv", text.encode()))  # type: ignore[union-attr]
    assert [repr(v) for v in run.series["loss"].values] == [repr(v) for v in values]
    rows = "\n".join(json.dumps({"step": i, "loss": v}) for i, v in enumerate(values)).encode()
    (same,) = readers.reader_for(from_bytes("a.jsonl", rows)).read(from_bytes("a.jsonl", rows))  # type: ignore[union-attr]
    assert [repr(v) for v in same.series["loss"].values] == [repr(v) for v in values]


@FEW
@given(
    values=st.lists(st.floats(width=32), min_size=1, max_size=50), step=st.integers(0, 2**40), cut=st.integers(0, 30)
)
def test_event_files_give_back_what_was_written(values: list[float], step: int, cut: int) -> None:
    data = events([(step + i, "t", v) for i, v in enumerate(values)])
    (run,) = readers.reader_for(from_bytes("x.tfevents.1", data)).read(from_bytes("x.tfevents.1", data))  # type: ignore[union-attr]
    packed = [struct.unpack("<f", struct.pack("<f", v))[0] for v in values]
    assert [repr(v) for v in run.series["t"].values] == [repr(v) for v in packed]
    assert list(run.series["t"].steps) == [step + i for i in range(len(values))]
    look("x.tfevents.1", data[: len(data) - cut])


@FEW
@given(order=st.permutations(["a/trainer_state.json", "b/metrics.csv", "c/trainer_log.jsonl", "d/history.json"]))
def test_the_order_of_files_changes_no_run(order: list[str]) -> None:
    def summary(names: list[str]) -> list[tuple[str, int, float | None]]:
        sources: list[Source] = [from_bytes(name, SAMPLES[name.split("/")[1]]) for name in names]
        return sorted((run.path, len(run.series), run.last_step) for run in witness(sources).runs)

    assert summary(order) == summary(sorted(order))


@FEW
@given(
    names=st.lists(
        st.tuples(st.sampled_from(sorted(SAMPLES)), st.sampled_from(["", "out/", "lightning_logs/version_1/"]))
    ),
    cut=st.integers(10, 2000),
)
def test_any_company_of_files_is_assembled(names: list[tuple[str, str]], cut: int) -> None:
    sources = [from_bytes(f"{folder}{name}", SAMPLES[name]) for name, folder in dict.fromkeys(names)]
    sources += [from_bytes(f"half/{name}", SAMPLES[name][:cut]) for name in sorted({name for name, _ in names})]
    seen = witness(sources)
    sound(list(seen.runs))
    files = [path for run in seen.runs for path in run.files if not path.endswith((".yaml", "config.json"))]
    attempts = {(run.path, run.attempt) for run in seen.runs}
    assert len(attempts) == len(seen.runs)
    assert set(files) <= {source.name for source in sources}
