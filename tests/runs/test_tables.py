"""Tables of the programs that write CSV, and tables that are none of our business."""

from __future__ import annotations

import math

import pytest
from tests.runs.helpers import kinds, one, read, table

from trainwreck.core.source import from_bytes
from trainwreck.runs.witness import witness


def test_lightning_rows_are_sparse_and_a_missing_cell_is_not_nan() -> None:
    text = table(
        "epoch,step,train_loss_epoch,train_loss_step,val_loss",
        ["0,49,,2.31,", "0,99,,2.01,", "0,99,,,2.2", "0,99,2.16,,", "1,149,,nan,"],
    )
    run = one("metrics.csv", text)
    assert run.format == "lightning-metrics-csv"
    assert list(run.series["train_loss_step"].steps) == [49, 99, 149]
    assert math.isnan(run.series["train_loss_step"].values[-1])
    assert list(run.series["val_loss"].values) == [2.2]
    assert run.series["train_loss_step"].where(2).line == 6


def test_keras_epochs_start_again() -> None:
    rows = [f"{epoch};{1 / (epoch + 1)};{1.2 / (epoch + 1)}" for _ in range(3) for epoch in range(8)]
    runs = read("training.log", table("epoch;loss;val_loss", rows))
    assert [(run.attempt, run.of_attempts) for run in runs] == [(1, 3), (2, 3), (3, 3)]
    assert runs[-1].format == "keras-csvlogger"
    assert kinds(runs[-1]) == {"appended-runs", "duplicated-epochs"}
    assert runs[1].series["loss"].lines[0] == 10


def test_a_repeated_header_is_no_row() -> None:
    text = table("epoch,loss", ["0,1.0", "1,0.8", "epoch,loss", "0,1.1", "1,0.7", "2,0.5"])
    runs = read("history.csv", text)
    assert [len(run.series["loss"]) for run in runs] == [2, 3]


def test_a_new_header_brings_new_columns() -> None:
    text = table(
        "epoch,step,loss", ["0,10,1.0", "0,20,0.9", "epoch,step,loss,val_loss", "1,30,0.8,0.9", "1,40,0.7,0.8"]
    )
    run = one("metrics.csv", text)
    assert len(run.series["loss"]) == 4
    assert list(run.series["val_loss"].steps) == [30, 40]


def test_rows_wider_than_the_header_and_a_cut_last_line() -> None:
    run = one("metrics.csv", "epoch,step,loss\n0,10,1.0,7,8\n0,20,0.9\n0,30,0.8\n0,4")
    assert list(run.series["loss"].values) == [1.0, 0.9, 0.8]


def test_stable_baselines_counts_environment_steps() -> None:
    text = table(
        "time/iterations,rollout/ep_rew_mean,time/total_timesteps,train/loss,train/explained_variance",
        ["1,-20.5,2048,,", "2,-19.0,4096,0.31,nan", "3,-18.5,6144,0.4,0.1"],
    )
    run = one("progress.csv", text)
    assert run.format == "sb3-progress-csv"
    assert run.series["rollout/ep_rew_mean"].unit == "env-step"
    assert run.series["train/loss"].role == "rl-loss"
    assert list(run.series["train/loss"].steps) == [4096, 6144]


def test_monitor_has_a_comment_before_its_header() -> None:
    text = '#{"t_start": 1700000000.0, "env_id": "Maze-v0"}\nr,l,t\n12.5,33,1.1\n14.0,30,2.3\n16.0,28,3.4\n'
    run = one("0.monitor.csv", text)
    assert run.format == "sb3-monitor-csv"
    assert run.series["r"].role == "reward"
    assert run.series["l"].role == "episode-length"
    assert run.series["r"].where(0).line == 3


@pytest.mark.parametrize("pad", ["", "      "])
def test_ultralytics_pads_or_does_not(pad: str) -> None:
    names = ["epoch", "train/box_loss", "train/cls_loss", "metrics/mAP50(B)", "val/box_loss", "val/cls_loss", "lr/pg0"]
    rows = [",".join(f"{pad}{v}" for v in (e, 1.5 / e, 0, 0.1 * e, 1.7 / e, 0, 0.01)) for e in range(1, 6)]
    run = one("results.csv", table(",".join(pad + n for n in names), rows))
    assert run.format == "ultralytics-results-csv"
    assert run.series["val/cls_loss"].role == "eval-loss-term"
    assert run.series["metrics/mAP50(B)"].role == "eval-metric"
    assert list(run.series["train/box_loss"].steps) == [1, 2, 3, 4, 5]


def test_timm_and_diffusion_and_dvclive() -> None:
    timm = one("summary.csv", table("epoch,train_loss,eval_loss,eval_top1,eval_top5,lr", ["0,6.9,6.8,0.5,2.1,0.1"] * 1))
    assert timm.format == "timm-summary-csv"
    diffusion = one(
        "progress.csv",
        table("grad_norm,loss,loss_q0,param_norm,samples,step", ["0.5,0.9,0.2,310,640,10", "0.4,0.8,0.3,311,1280,20"]),
    )
    assert diffusion.series["loss"].role == "loss"
    assert list(diffusion.series["loss"].steps) == [10, 20]
    dvclive = one("loss.tsv", "timestamp\tstep\tloss\n1700000000\t0\t1.5\n1700000010\t1\t1.25\n")
    assert list(dvclive.series["loss"].values) == [1.5, 1.25]


def test_train_and_validation_told_by_a_word() -> None:
    run = one(
        "log.csv",
        table("epoch,phase,loss,acc", [f"{e},{p},{1 / (e + 1)},0.5" for e in range(4) for p in ("train", "val")]),
    )
    assert run.series["train/loss"].role == "loss"
    assert run.series["val/loss"].role == "eval-loss"


def test_long_tables() -> None:
    rows = [f"{s},{m},{v}" for s in range(5) for m, v in (("loss", 2.0 - s / 5), ("val_acc", s / 10))]
    run = one("long.csv", table("step,metric,value", rows))
    assert list(run.series["loss"].steps) == [0, 1, 2, 3, 4]
    assert run.series["val_acc"].role == "eval-metric"


def test_folds_are_told_apart() -> None:
    rows = [f"{fold},{epoch},{1 / (epoch + 1)}" for fold in range(3) for epoch in range(5)]
    runs = read("cv.csv", table("fold,epoch,loss", rows))
    assert len(runs) == 3
    assert "several-folds-in-one-log" in kinds(runs[-1])


def test_steps_within_the_epoch_are_continued() -> None:
    rows = [f"{epoch},{batch},{2 - 0.1 * epoch - 0.01 * batch}" for epoch in range(4) for batch in range(0, 50, 10)]
    run = one("log.csv", table("epoch,batch,loss", rows))
    steps = list(run.series["loss"].steps)
    assert len(steps) == 20
    assert steps == sorted(steps)
    without_epoch = [f"{batch},{2 - 0.1 * epoch - 0.001 * batch}" for epoch in range(4) for batch in range(0, 50, 10)]
    joined = one("log.csv", table("batch,loss", without_epoch))
    assert len(joined.series["loss"]) == 20


def test_a_resume_closes_its_seam() -> None:
    rows = [f"{s},{3 - s / 100}" for s in range(0, 110, 10)] + [f"{s},{2.9 - s / 100}" for s in range(60, 160, 10)]
    run = one("train.csv", table("step,loss", rows))
    assert list(run.seams) == [60]
    assert list(run.series["loss"].steps) == list(range(0, 160, 10))
    assert run.series["loss"].values[6] == pytest.approx(2.3)
    assert "resume-seam" in kinds(run)


@pytest.mark.parametrize(
    "text",
    [
        table("sepal_length,sepal_width,species", ["5.1,3.5,setosa", "4.9,3.0,setosa"]),
        table("id,age,income,score", ["1,33,50000,0.3", "2,41,61000,0.9", "3,27,38000,0.7"]),
        table("model,seed,accuracy,loss", ["base,1,0.91,0.31", "large,1,0.93,0.27"]),
        table("y_true,y_pred", ["1,0.3", "0,0.2"]),
        table("date,open,close,volume", ["2024-01-02,1.1,1.2,1000", "2024-01-03,1.2,1.3,900"]),
        'name,comment\nx,"CUDA out of memory, he said"\n',
        "a sentence, with a comma\nand another, one\n",
        "",
    ],
)
def test_data_sets_are_no_runs(text: str) -> None:
    assert read("data.csv", text) == []


def test_numbers_as_people_write_them() -> None:
    text = table("step,loss,acc", ['0,"1,234.5",50%', "1,inf,60%", "2,1.2e-05,n/a", "3,-inf,70%"])
    run = one("log.csv", text)
    assert list(run.series["loss"].values) == [1234.5, math.inf, 1.2e-05, -math.inf]
    assert list(run.series["acc"].values) == pytest.approx([0.5, 0.6, 0.7])


def test_utf16_from_powershell() -> None:
    text = table("epoch,loss,val_loss", ["0,1.0,1.1", "1,0.9,1.0"])
    assert list(one("log.csv", text.encode("utf-16")).series["loss"].values) == [1.0, 0.9]


def test_a_spike_survives_the_thinning_of_a_long_table() -> None:
    values = [1.0 + (i % 7) / 100 for i in range(150_000)]
    values[77_777], values[111_111] = 99.0, math.nan
    run = one("long.csv", table("step,loss", [f"{i},{v}" for i, v in enumerate(values)]))
    series = run.series["loss"]
    assert len(series) < 101_000
    assert series.steps[list(series.values).index(99.0)] == 77_777
    broken = [step for step, value in zip(series.steps, series.values, strict=True) if math.isnan(value)]
    assert broken == [111_111]
    assert list(series.steps) == sorted(series.steps)
    assert run.notes


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "epoch, train loss, val loss\n0, 1.0, 1.1\n1, 0.9, 1.0\n"),
        ("log.txt", "# epoch\ttrain loss\tval loss\n0\t1.0\t1.1\n1\t0.9\t1.0\n"),
        ("log.dat", "# epoch train_loss val_loss\n0 1.0 1.1\n1 0.9 1.0\n"),
        ("log.txt", "epoch   train_loss   val_loss\n    0       1.0   1.1\n    1    0.9   1.0\n"),
    ],
)
def test_headers_in_comments_and_columns_of_blanks(name: str, text: str) -> None:
    run = one(name, text)
    assert [list(s.values) for s in run.by_role("loss", "eval-loss")] == [[1.0, 0.9], [1.1, 1.0]]
    assert list(run.by_role("loss")[0].steps) == [0, 1]


def test_exports_of_tensorboard_and_wandb() -> None:
    exported = one("run-a-tag-train_loss.csv", "Wall time,Step,Value\n1700000000.1,0,2.0\n1700000001.1,10,1.5\n")
    assert list(exported.series["train_loss"].steps) == [0, 10]
    name = "happy-sun-3 - train/loss"
    text = f'"Step","{name}","{name}__MIN","{name}__MAX"\n"0","2.0","2.0","2.0"\n"1","1.9","1.9","1.9"\n'
    assert [s.name for s in one("export.csv", text).by_role("loss")] == [name]


def test_spinning_up() -> None:
    text = "Epoch\tAverageEpRet\tLossPi\tLossV\tTotalEnvInteracts\n0\t1.0\t-0.1\t5\t4000\n1\t2.0\t-0.1\t5\t8000\n"
    run = one("progress.txt", text)
    assert {s.role for s in run.series.values()} >= {"reward", "policy-loss", "value-loss"}
    assert list(run.series["LossPi"].steps) == [4000, 8000]


def test_a_table_with_other_text_in_it_is_still_searched_for_errors() -> None:
    text = table(
        "epoch,loss,val_loss", ["0,1.0,1.1", "1,0.9,1.0", "Traceback (most recent call last):", "KeyError: 'x'"]
    )
    seen = witness([from_bytes("training.log", text.encode())])
    assert len(seen.runs[0].series["loss"]) == 2
    assert not seen.structured
    assert witness([from_bytes("training.log", text[:40].encode())]).structured


def test_epochs_told_twice_by_a_resume() -> None:
    rows = [f"{e},{e * 10.0},{1 / (e + 1)},{1.1 / (e + 1)}" for e in range(8)]
    rows += [f"{e},{e * 10.0 - 50},{1 / (e + 1)},{1.1 / (e + 1)}" for e in range(6, 14)]
    run = one("results.csv", table("epoch,time,train/loss,val/loss", rows))
    assert list(run.series["train/loss"].steps) == list(range(14))
    assert kinds(run) == {"resume-seam", "duplicated-epochs"}
