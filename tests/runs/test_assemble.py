"""Several files, one run: prefixes, tellings, starts, settings; and what is not one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.runs.helpers import kinds, of_directory, table

from trainwreck.core.run import Run


def state(last: int, offset: float = 0.0, after: int = 10**9, end: bool = False) -> str:
    """A trainer state with a row every ten steps; from ``after`` on it tells something else."""
    rows: list[dict[str, float]] = [
        {"loss": round(4 - step / 100 + offset + (0.5 if step >= after else 0), 4), "learning_rate": 1e-4, "step": step}
        for step in range(10, last + 1, 10)
    ]
    if end:
        rows.append({"train_loss": 2.0, "train_runtime": 5.0, "step": last})
    return json.dumps({"max_steps": 200, "log_history": rows})


def curves(runs: object) -> list[Run]:
    return [run for run in runs if run.series]  # type: ignore[attr-defined]


def test_checkpoints_are_prefixes_of_one_history(tmp_path: Path) -> None:
    files = {f"out/checkpoint-{n}/trainer_state.json": state(n) for n in (50, 100, 150)}
    (run,) = of_directory(tmp_path, files | {"out/trainer_state.json": state(200, end=True)}).runs
    assert run.last_step == 200
    assert len(run.files) == 4
    assert run.outcome == "completed"
    assert not run.seams


def test_two_runs_in_one_directory_are_not_merged(tmp_path: Path) -> None:
    files = {
        "out/checkpoint-100/trainer_state.json": state(100),
        "out/checkpoint-150/trainer_state.json": state(150, offset=0.7),
    }
    runs = of_directory(tmp_path, files).runs
    assert len(runs) == 2
    assert all("two-runs-one-dir" in kinds(run) for run in runs)


def test_a_resumed_trainer_leaves_a_seam(tmp_path: Path) -> None:
    files = {
        "out/checkpoint-100/trainer_state.json": state(100),
        "out/checkpoint-200/trainer_state.json": state(200, after=80),
    }
    (run,) = of_directory(tmp_path, files).runs
    assert list(run.seams) == [80]
    assert "resume-seam" in kinds(run)


def test_state_and_console_tell_one_run(tmp_path: Path) -> None:
    console = "".join(
        f"{{'loss': {4 - s / 100:.4f}, 'learning_rate': 0.0001, 'epoch': {s / 200}}}\n" for s in range(10, 210, 10)
    )
    files = {"out/trainer_state.json": state(200), "train.log": console}
    runs = curves(of_directory(tmp_path, files).runs)
    assert len(runs) == 1
    assert runs[0].format == "hf-trainer-state"
    assert len(runs[0].files) == 2


def test_another_run_beside_it_stays_apart(tmp_path: Path) -> None:
    rows = [f"{step},{3.7 - step / 130}" for step in range(10, 210, 10)]
    files = {"out/trainer_state.json": state(200), "other/log.csv": table("step,loss", rows)}
    assert len(curves(of_directory(tmp_path, files).runs)) == 2


def test_two_dead_runs_are_not_one(tmp_path: Path) -> None:
    flat = table("step,loss", [f"{step},0.0" for step in range(0, 100, 10)])
    assert len(curves(of_directory(tmp_path, {"a/log.csv": flat, "b/log.csv": flat}).runs)) == 2


def test_versions_are_attempts_and_settings_attach(tmp_path: Path) -> None:
    metrics = [table("epoch,step,train_loss", [f"0,{s},{2 - v - s / 100}" for s in range(0, 60, 10)]) for v in (0, 1)]
    files: dict[str, str] = {f"lightning_logs/version_{v}/metrics.csv": metrics[v] for v in (0, 1)}
    files |= {f"lightning_logs/version_{v}/hparams.yaml": f"lr: 0.{v + 1}\nbatch_size: 4\n" for v in (0, 1)}
    runs = of_directory(tmp_path, files).runs
    assert [(run.attempt, run.of_attempts, run.settings["lr"].value) for run in runs] == [(1, 2, 0.1), (2, 2, 0.2)]


def test_settings_of_the_directory_above_and_no_run_of_their_own(tmp_path: Path) -> None:
    results = table("epoch,train/box_loss,val/box_loss", [f"{e},{1 / e},{1.5 / e}" for e in range(1, 5)])
    files = {
        "runs/exp/results.csv": results,
        "runs/exp/args.yaml": "lr0: 0.01\nepochs: 4\nbatch: 8\n",
        "config.json": '{"lr": 1, "seed": 3}',
    }
    seen = of_directory(tmp_path, files)
    (run,) = seen.runs
    assert run.settings["lr0"].value == 0.01
    assert "config" in seen.observed
    assert not of_directory(tmp_path / "b", {"config.json": '{"lr": 1, "seed": 3}'}).runs


def test_end_results_complete_their_run(tmp_path: Path) -> None:
    results = '{"epoch": 3.0, "train_loss": 2.0, "train_runtime": 10.0}'
    (run,) = of_directory(tmp_path, {"out/trainer_state.json": state(100), "out/all_results.json": results}).runs
    assert run.outcome == "completed"
    assert "train_loss" not in run.series


def test_ranks_carry_their_number(tmp_path: Path) -> None:
    files = {
        f"logs/metrics_rank{r}.csv": table("step,loss", [f"{s},{2 + r - s / 50}" for s in range(0, 60, 10)])
        for r in (0, 1)
    }
    assert [list(run.ranks) for run in of_directory(tmp_path, files).runs] == [[0], [1]]


@pytest.mark.parametrize(("jump", "told"), [(-400.0, True), (90_000.0, True), (15.0, False)])
def test_the_clock_jumps_at_a_resume(tmp_path: Path, jump: float, told: bool) -> None:
    clock = [10.0 * i + (jump if i >= 20 else 0) for i in range(40)]
    text = table(
        "epoch,time,train_loss,val_loss", [f"{i},{t},{1 / (i + 1)},{1.1 / (i + 1)}" for i, t in enumerate(clock)]
    )
    (run,) = of_directory(tmp_path, {"results.csv": text}).runs
    assert ("resume-clock-jump" in kinds(run)) == told


def test_dvclive_files_are_one_run(tmp_path: Path) -> None:
    def tsv(name: str) -> str:
        return f"step\t{name}\n" + "".join(f"{s}\t{1 / (s + 1)}\n" for s in range(5))

    files = {f"dvclive/plots/metrics/{split}/loss.tsv": tsv("loss") for split in ("train", "val")}
    files["dvclive/plots/metrics/learning_rate.tsv"] = tsv("learning_rate")
    (run,) = of_directory(tmp_path, files).runs
    assert len(run.series) == 3


def test_settings_tell_the_intended_length(tmp_path: Path) -> None:
    def results(epochs: int) -> str:
        return table("epoch,train/box_loss,val/box_loss", [f"{e},{1 / e},{1.5 / e}" for e in range(1, epochs + 1)])

    for epochs, outcome in ((9, "completed"), (5, "unknown")):
        files = {"results.csv": results(epochs), "args.yaml": "lr0: 0.01\nepochs: 9\n"}
        (run,) = of_directory(tmp_path / str(epochs), files).runs
        assert (run.planned, run.outcome) == (9, outcome)


def test_folds_of_a_console_are_folds(tmp_path: Path) -> None:
    text = "".join(
        f"Fold {fold}/3\n"
        + "".join(f"Epoch {e}/6 | Loss: {1 / e:.4f} | Val Acc: {0.5 + e / 20:.4f}\n" for e in range(1, 7))
        for fold in (1, 2, 3)
    )
    runs = of_directory(tmp_path, {"output.log": text}).runs
    assert len(runs) == 3
    assert "several-folds-in-one-log" in kinds(runs[-1])
