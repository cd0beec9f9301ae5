"""Console text: attempts, ends, events, settings; and what is no training log."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_console_formats import CASES, curve, read

from trainwreck.core.run import Run
from trainwreck.core.source import Source, from_bytes
from trainwreck.runs.console.events import EVENTS, events_in
from trainwreck.runs.readers import console

STEPS = "".join(f"step {i * 10} loss {3 - i / 10:.3f} lr 1e-4\n" for i in range(8))
TRACE = (
    'Traceback (most recent call last):\n  File "train.py", line 12, in <module>\n    loss = model(x)\nValue'
    "Error: bad value 3\n"
)


def kinds(run: Run) -> list[str]:
    return [event.kind for event in run.events]


@pytest.mark.parametrize(
    ("end", "outcome", "kind"),
    [
        (
            "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***",
            "time-limit",
            "time-limit",
        ),
        (
            "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO PREEMPTION ***",
            "killed",
            "preempted",
        ),
        (
            "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO NODE FAILURE ***",
            "killed",
            "node-failure",
        ),
        ("slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-01T00:00:00 ***", "cancelled", "cancelled"),
        (
            "\r 45%|####5     | 450/1000 [02:00<02:20,  3.9it/s]slurmstepd: error: *** JOB 9 ON x CANCELLED AT 2"
            "024-01-01T00:00:00 ***",
            "cancelled",
            "cancelled",
        ),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=9.batch. Some of the step tasks have been OO"
            "M Killed.",
            "killed",
            "host-oom-kill",
        ),
        ("srun: error: node1: task 3: Out Of Memory", "killed", "host-oom-kill"),
        ("[12345.678] Out of memory: Killed process 999 (python) total-vm:1kB", "killed", "host-oom-kill"),
        (
            "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140.",
            "time-limit",
            "time-limit",
        ),
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "killed", "host-oom-kill"),
        ("Killed", "killed", "killed"),
        ("train.sh: line 3: 4711 Killed                  python train.py", "killed", "killed"),
        ("process exited with code 137", "killed", "killed"),
        (
            "[2024-01-01 10:00:00,1] [ERROR] [launch.py:325:sigkill_handler] ['python'] exits with return code = -9",
            "crashed",
            "dist-child-failed",
        ),
        (
            '^CTraceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyboardInterrupt',
            "interrupted",
            "interrupted",
        ),
        (TRACE, "crashed", "traceback"),
        ("Segmentation fault (core dumped)", "crashed", "segmentation-fault"),
        ("Training completed. Do not forget to share your model", "completed", "completed"),
        ("`Trainer.fit` stopped: `max_epochs=8` reached.", "completed", "completed"),
        ("final loss=2.2 test_acc=0.9", "completed", None),
    ],
)
def test_how_a_run_ended(end: str, outcome: str, kind: str | None) -> None:
    runs = read(STEPS + end + "\n")
    assert len(runs) == 1
    assert runs[0].outcome == outcome
    assert len(runs[0].series["loss"]) == 8
    if kind is not None:
        assert kind in kinds(runs[0])


def test_a_traceback_with_numbers_after_it_is_not_fatal() -> None:
    run = read(STEPS + TRACE + "step 80 loss 2.1 lr 1e-4\nstep 90 loss 2.0 lr 1e-4\n")[-1]
    assert run.outcome == "unknown"
    assert len(run.series["loss"]) == 10


def test_a_log_with_only_a_traceback_is_a_crashed_run_without_series() -> None:
    (run,) = read(TRACE)
    assert (run.outcome, dict(run.series)) == ("crashed", {})


def test_nothing_inside_a_traceback_is_a_metric() -> None:
    (run,) = read(STEPS + TRACE.replace("loss = model(x)", "step = 7; loss = 0.5"))
    assert max(run.series["loss"].steps) == 70


def test_steps_that_begin_again_are_another_attempt() -> None:
    runs = read(STEPS + TRACE + STEPS)
    assert [(r.attempt, r.of_attempts, r.outcome, len(r.series["loss"])) for r in runs] == [
        (1, 2, "crashed", 8),
        (2, 2, "unknown", 8),
    ]


def test_folds_are_attempts() -> None:
    fold = "".join(f"Epoch {e}/5 | Loss: {1 / e:.3f} | Val Acc: 0.9\n" for e in range(1, 6))
    runs = read("".join(f"Fold {k}/3\n{fold}" for k in range(1, 4)))
    assert [len(r.series["Loss"]) for r in runs] == [5, 5, 5]
    assert all(r.outcome == "completed" for r in runs)
    assert [kinds(r) for r in runs] == [["banner"]] * 3


def test_the_first_line_of_a_program_again_after_a_crash_is_another_attempt() -> None:
    opening = "INFO - Loading configuration from conf.yaml\n"
    runs = read(opening + TRACE + opening + TRACE + opening + STEPS)
    assert [r.outcome for r in runs] == ["crashed", "crashed", "unknown"]


def test_a_resume_is_a_seam_and_its_numbers_are_no_points() -> None:
    text = (
        STEPS
        + "resumed at step 70, test accuracy 0.88, lr 0.5\n"
        + "".join(f"step {s} loss 2.0 lr 1e-4\n" for s in (80, 90))
    )
    (run,) = read(text)
    assert list(run.seams) == [70]
    assert 0.5 not in run.series["lr"].values
    (event,) = run.events
    assert (event.kind, event.value) == ("resumed", {"step": 70, "test accuracy": 0.88, "lr": 0.5})


def test_a_resume_that_goes_back_keeps_what_was_before_it() -> None:
    runs = read(
        STEPS
        + "Loading checkpoint, resuming from step 40\n"
        + "".join(f"step {s} loss 1.0 lr 1e-4\n" for s in (40, 50, 60))
    )
    assert [r.attempt for r in runs] == [1, 2]
    assert curve(runs[1], "loss") == [(0, 3.0), (10, 2.9), (20, 2.8), (30, 2.7), (40, 1.0), (50, 1.0), (60, 1.0)]
    assert list(runs[1].seams) == [40]


def test_steps_within_epochs_become_one_axis() -> None:
    text = "".join(f"epoch {e} step {s} loss {2 - e * 0.1:.2f}\n" for e in range(3) for s in (0, 10, 20))
    assert [s for s, _ in curve(read(text)[0], "loss")] == [0, 10, 20, 30, 40, 50, 60, 70, 80]


def test_global_steps_beside_epochs_stay() -> None:
    text = "".join(f"epoch {s // 30} step {s} loss {2 - s / 100:.2f}\n" for s in range(0, 90, 10))
    assert [s for s, _ in curve(read(text)[0], "loss")] == list(range(0, 90, 10))


def test_steps_within_epochs_told_by_headings() -> None:
    text = "".join(f"Epoch {e}/3\n" + "".join(f"batch {s} loss 1.{e}{s}\n" for s in (10, 20, 30)) for e in (1, 2, 3))
    runs = read(text)
    assert len(runs) == 1
    assert [s for s, _ in curve(runs[0], "loss")] == [10, 20, 30, 40, 50, 60, 70, 80, 90]


def test_one_name_per_step_and_per_epoch_is_two_series() -> None:
    (run,) = read("".join(f"step {e * 100 + 50} loss 0.5{e}\nepoch {e} loss 0.6{e}\n" for e in range(4)))
    assert run.series["loss"].unit == "step"
    assert run.series["loss (per epoch)"].unit == "epoch"


def test_labels_that_take_turns_are_two_curves() -> None:
    text = "".join(f"gen step {s} loss 1.0\ndisc step {s} loss 0.5\n" for s in range(0, 50, 10))
    (run,) = read(text)
    assert set(run.series["gen/loss"].values) == {1.0}
    assert set(run.series["disc/loss"].values) == {0.5}


def test_skipped_steps_are_events() -> None:
    text = STEPS + (
        "[2024-05-01 10:00:00,123] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skippin"
        "g step. Attempted loss scale: "
        "65536, reducing to 32768\n2024 | WARNING | NOTE: gradient overflow detected, ignoring gradient, setting"
        " loss scale to: 64.0\n"
        "The grad norm is nan. Skipping updating the model.\nFloatingPointError: Minimum loss scale reached (0.0001).\n"
    )
    (run,) = read(text)
    assert kinds(run) == ["overflow-skip", "overflow-skip", "nonfinite-skip", "min-loss-scale"]
    assert [e.value for e in run.events[:2]] == [32768, 64]
    assert run.events[0].where.step == 70


@pytest.mark.parametrize(
    "line",
    [
        "early_stopping_patience=3",
        "number of nan iterations:   0 | number of skipped iterations:   0 |",
        "Killing subprocess 1234",
        "signals are handled",
        "loss 0.5 lr 1e-3",
        "resume_from_checkpoint=None,",
        "Started Training",
        "This will be terminated with 3 info lines",
    ],
)
def test_plain_lines_tell_no_event(line: str) -> None:
    assert [rule.kind for rule, _ in events_in(line)] == []


def test_every_kind_stands_in_the_table_of_the_module() -> None:
    from trainwreck.runs.console import events

    assert events.__doc__ is not None
    for rule in EVENTS:
        assert f"\n{rule.kind} " in events.__doc__, rule.kind


def test_settings_with_their_lines() -> None:
    text = (
        "Namespace(lr=0.001, batch_size=32, optimizer='adamw', fp16=True, resume=None)\n30259 characters, vocabu"
        "lary 41, uniform loss 3.714\n"
        "trainable parameters: 9,557\n***** Running training *****\n  Num examples = 480\n  Num Epochs = 3\n  we"
        "ight_decay ..... 0.1\n"
        "Using 16bit Automatic Mixed Precision (AMP)\n"
    )
    (run,) = read(text + STEPS)
    told = {key: (s.value, s.where.line) for key, s in run.settings.items()}
    assert told["lr"] == (0.001, 1)
    assert told["optimizer"] == ("adamw", 1)
    assert told["fp16"] == (True, 1)
    assert told["uniform loss"] == (3.714, 2)
    assert told["vocabulary"] == (41, 2)
    assert told["trainable parameters"] == (9557, 3)
    assert told["Num Epochs"] == (3, 6)
    assert told["weight_decay"] == (0.1, 7)
    assert told["precision"][1] == 8


PIP = (
    "Collecting torch==2.1.0\n  Downloading torch-2.1.0-cp311-manylinux1_x86_64.whl (670.2 MB)\n     ━━━━━━━━━"
    "━━━━━━━ 670.2/670.2 MB 3.1 MB/s eta 0:00:00\nSuccessfully installed torch-2.1.0\n"
)
SMI = (
    "+-----------------------------------------------------------------------------+\n| NVIDIA-SMI 525.60.13    "
    "Driver Version: 525.60.13    CUDA Version: 12.0     |\n"
    "|   0  NVIDIA A100 80G...  On   | 00000000:01:00.0 Off |                    0 |\n| N/A   34C    P0    52W /"
    " 400W |      0MiB / 81920MiB |      0%      Default |\n"
)
CODE = (
    "import torch\n\ndef train(model, step=0, loss=0.0):\n    lr = 0.003\n    loss = 0.5\n    epoch = 3\n    "
    'for step in range(10):\n        print(f"step {step} loss {loss:.3f}")\n'
)
ENV = (
    "torch 2.1.0\nCUDA 12.1\nPython 3.11.4\nLD_LIBRARY_PATH=/usr/lib:/opt/2\n2024-01-01 10:00:00 server starte"
    "d on port 8080\n"
)


@pytest.mark.parametrize("text", [PIP, SMI, CODE, ENV, "", "\n\n", "hello world 3\n", "The loss of 3 ships in 1912\n"])
def test_what_is_no_training_gives_no_run(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    "name",
    ["train.py", "README.md", "config.json", "conf.yaml", "run.sh", "requirements.txt", "Dockerfile", "data.csv"],
)
def test_files_that_are_no_console_text_are_left_to_others(name: str) -> None:
    assert not console.sniff(from_bytes(name, b"epoch 1 loss 0.5\n"))


def test_a_configuration_in_json_without_a_suffix_is_left_alone() -> None:
    assert not console.sniff(from_bytes("config", json.dumps({"lr": 0.1, "epochs": 3}, indent=2).encode()))


def test_the_sources_of_this_package_give_no_series() -> None:
    for path in sorted(Path(console.__file__).parents[1].rglob("*.py")):
        assert not any(run.series for run in read(path.read_text("utf-8"))), path


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.binary(max_size=400), st.text(max_size=400).map(lambda s: s.encode("utf-8", "replace"))))
def test_no_input_raises(data: bytes) -> None:
    source = from_bytes("x", data)
    console.sniff(source)
    console.read(source)


LINES = [line for text, _ in CASES.values() for line in text.splitlines(keepends=True)]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(LINES), max_size=30),
    st.integers(0, 2**32),
    st.sampled_from(["utf-8", "utf-16", "latin-1"]),
)
def test_no_mutated_log_raises(lines: list[str], seed: int, encoding: str) -> None:
    rng = random.Random(seed)
    text = list("".join(lines))
    for _ in range(min(len(text), 20)):
        at = rng.randrange(len(text))
        text[at] = rng.choice(
            ["", "\r", "\n", "\x00", "\x1b[0m", "nan", "|", "[", "(", "{", "'", "9" * 30, "-", "e", ",", ".", "%|"]
        )
    for run in console.read(from_bytes("x", "".join(text).encode(encoding, "replace"))):
        for series in run.series.values():
            assert len(series.steps) == len(series.values) == len(series.lines or series.values)


@pytest.mark.parametrize(
    "piece",
    ["[", "(", "1 ", "1:", "a ", "|", "- ", "loss ", "1/", "nan ", "=", "{'", ".", "epoch ", "\r1", "x" * 50 + " "],
)
def test_long_lines_of_one_kind_take_no_time(piece: str) -> None:
    before = time.process_time()
    read((piece * (60_000 // len(piece)) + "\n") * 3)
    assert time.process_time() - before < 3


class _Endless:
    """A file of ``size`` bytes that repeats ``unit`` and is never held as a whole."""

    def __init__(self, unit: bytes, size: int) -> None:
        self.unit, self.left = unit, size

    def read(self, count: int = -1) -> bytes:
        count = min(count, self.left)
        self.left -= count
        return (self.unit * (count // len(self.unit) + 1))[:count]

    def __enter__(self) -> _Endless:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_a_bar_without_line_feeds_is_read_in_bounded_memory() -> None:
    unit = b"".join(
        b"\r%3d%%|####      | %d/1000 [00:10<00:10,  3.90it/s, loss=1.25]" % (i // 10, i) for i in range(1000)
    )
    source = Source("bar", lambda: _Endless(unit, 8 << 20), unit[:65536], None)  # type: ignore[arg-type,return-value]
    tracemalloc.start()
    runs = console.read(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert runs
    assert peak < 40 << 20


def test_thinning_keeps_extremes_and_what_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    from trainwreck.runs.console import store

    monkeypatch.setattr(store, "MAX_POINTS", 2000)
    lines = [f"step {i} loss {'nan' if i == 4321 else 99 if i == 1234 else 1 + i % 7 / 100}\n" for i in range(8000)]
    (run,) = read("".join(lines))
    points = dict(zip(run.series["loss"].steps, run.series["loss"].values, strict=True))
    assert len(points) < 3000
    assert points[1234] == 99
    assert points[4321] != points[4321]
    assert {0, 7999} <= set(points)
    assert "thinned" in run.notes[0]
