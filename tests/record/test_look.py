"""``follow`` tells the alarms of a recording, ``inspect`` what a recording or a checkpoint holds."""

from __future__ import annotations

import json
import struct
import threading
import time
from pathlib import Path

import pytest

from trainwreck.core.errors import NothingReadable
from trainwreck.record import follow, inspection
from trainwreck.record.inside.store import Store

ALARM = {"level": "critical", "module": "Net.head", "predicts": "the weights follow", "advice": "look at the batch"}


def recording(folder: Path, steps: int = 40) -> Path:
    store = Store(str(folder), {"argv": ["train.py"]})
    for step in range(1, steps + 1):
        store.row(
            "steps",
            {
                "step": step,
                "loss": 1.0,
                "grad_norm/Net.head": float("nan") if step > 30 else 0.5,
                "grad_norm/Net.body": 0.0,
                "memory": 2.0**20 * step,
            },
        )
    store.event("alarm-nonfinite-gradient", "the gradient is nan", 31, **ALARM)
    store.flush()
    store.event("ended", "the process ended by itself", steps)
    store.close()
    return folder


def safetensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> Path:
    header, body = {}, b""
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def test_follow_tells_alarms_and_ends_with_the_run(tmp_path: Path) -> None:
    events = list(follow.follow(recording(tmp_path / "run")))
    assert [e["event"] for e in events] == ["alarm-nonfinite-gradient"]
    line = "step 31 rank 0: critical: the gradient is nan; the weights follow; look at the batch"
    assert follow.line(events[0]) == line


def test_follow_waits_for_a_recording_that_has_not_begun(tmp_path: Path) -> None:
    def later() -> None:
        time.sleep(0.3)
        recording(tmp_path / "run")

    threading.Thread(target=later).start()
    assert len(list(follow.follow(tmp_path / "run", poll=0.05))) == 1


def test_follow_gives_events_to_the_command(tmp_path: Path) -> None:
    (event,) = follow.follow(recording(tmp_path / "run"), wait=False)
    follow.call(f'echo "$TRAINWRECK_ALARM_KIND $TRAINWRECK_ALARM_STEP" > {tmp_path / "told"}', event)
    assert (tmp_path / "told").read_text() == "nonfinite-gradient 31\n"


def test_inspect_shows_modules_by_step(tmp_path: Path) -> None:
    facts = inspection.inspect(recording(tmp_path / "run"))
    (rank,) = facts["ranks"]
    head = rank["maps"]["grad_norm"]["rows"]["Net.head"]
    assert head[0] == 0.5
    assert head[-1] == "nan"
    assert rank["modules"]["Net.head"]["nonfinite"] == 10
    assert rank["memory_by_phase"]["after the step"]["peak"] == 40 * 2.0**20
    assert rank["memory"]["peak"] == 40 * 2.0**20
    row = next(line for line in inspection.text(facts) if line.startswith("Net.head") and "x" in line)
    assert row.rstrip().endswith("x")
    json.dumps(facts)


def test_inspect_looks_into_a_checkpoint(tmp_path: Path) -> None:
    path = safetensors(
        tmp_path / "model.safetensors",
        {
            "model.a.weight": ("F32", [2, 2], struct.pack("<4f", 1, 2, float("nan"), 4)),
            "model.b.weight": ("BF16", [2], struct.pack("<2H", 0x3F80, 0x7F80)),
            "head.bias": ("F16", [3], bytes(6)),
            "ids": ("I64", [1], bytes(8)),
        },
    )
    facts = inspection.inspect(path)
    assert (facts["parameters"], facts["bytes"]) == (10, 16 + 4 + 6 + 8)
    assert facts["nonfinite"] == ["model.a.weight", "model.b.weight"]
    assert facts["all_zero"] == ["head.bias"]
    assert any("2 tensors hold NaN" in line for line in inspection.text(facts))


@pytest.mark.parametrize(
    "data", [b"", b"short", struct.pack("<Q", 1 << 40), struct.pack("<Q", 4) + b"nope", b"\0" * 64]
)
def test_what_is_no_checkpoint_gets_a_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(NothingReadable, match="no whole safetensors file"):
        inspection.inspect(path)


def test_a_header_that_promises_more_than_there_is(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "x.safetensors", {"a": ("F32", [2], bytes(8))})
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(NothingReadable, match="the bytes of a are not all there"):
        inspection.inspect(path)


def test_a_folder_without_a_recording(tmp_path: Path) -> None:
    with pytest.raises(NothingReadable, match="no recording"):
        inspection.inspect(tmp_path)
    with pytest.raises(NothingReadable, match="no recording"):
        list(follow.follow(tmp_path, wait=False))
