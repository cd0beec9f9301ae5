"""JSON in all its shapes: trainer states, rows, histories, results, settings, and what is none of them."""

from __future__ import annotations

import json
import math

import pytest
from tests.runs.helpers import one, read

ROWS = [
    {"epoch": s / 100, "grad_norm": 1.5, "learning_rate": 1e-4, "loss": 3 - s / 100, "step": s}
    for s in range(10, 110, 10)
]
EVALS = [
    {"epoch": 0.5, "eval_loss": 2.2, "eval_runtime": 9.1, "step": 50},
    {"epoch": 1.0, "eval_loss": 2.1, "step": 100},
]
END = [{"epoch": 1.0, "train_loss": 9.9, "train_runtime": 90.0, "total_flos": 1e15, "step": 100}]


def state(history: list[dict[str, float]], **more: object) -> str:
    return json.dumps(
        {"best_metric": None, "max_steps": 100, "num_train_epochs": 1, "log_history": history} | more, indent=2
    )


def test_trainer_state_without_its_summary_row() -> None:
    run = one("out/trainer_state.json", state(ROWS + EVALS + END))
    assert run.format == "hf-trainer-state"
    assert run.outcome == "completed"
    assert run.planned == 100
    assert len(run.series["loss"]) == 10
    assert "train_loss" not in run.series
    assert list(run.series["eval_loss"].steps) == [50, 100]


def test_a_cut_trainer_state_gives_the_rows_before_the_cut() -> None:
    text = state(ROWS + EVALS)
    run = one("trainer_state.json", text[: text.index('"step": 80')])
    assert list(run.series["loss"].steps) == [10, 20, 30, 40, 50, 60, 70]
    assert "breaks off" in run.notes[0]


def test_bare_nan_and_numbers_as_strings() -> None:
    text = state([{"loss": "2.5", "grad_norm": math.nan, "step": 1}, {"loss": "nan", "grad_norm": math.inf, "step": 2}])
    run = one("trainer_state.json", text)
    assert run.series["loss"].values[0] == 2.5
    assert math.isnan(run.series["loss"].values[1])
    assert run.series["grad_norm"].values[1] == math.inf


def test_grpo_loss_is_no_learning_signal() -> None:
    rows = [
        {"loss": 0.0, "reward": 0.1 * s, "reward_std": 0.2, "rewards/format": 0.0, "kl": 0.01, "step": s}
        for s in range(1, 7)
    ]
    run = one("trainer_state.json", state(rows))
    assert run.series["loss"].role == "rl-loss"
    assert run.series["rewards/format"].role == "reward-term"


def test_llama_factory_rows_with_nulls_and_durations() -> None:
    rows = [
        {
            "current_steps": s,
            "total_steps": 30,
            "loss": 2 - s / 30,
            "eval_loss": None,
            "lr": 1e-5,
            "elapsed_time": f"1 day, 0:00:{s}",
        }
        for s in (10, 20)
    ]
    rows.append(
        {
            "current_steps": 30,
            "total_steps": 30,
            "loss": None,
            "eval_loss": None,
            "lr": None,
            "elapsed_time": "1 day, 0:01:00",
        }
    )
    run = one("trainer_log.jsonl", "\n".join(map(json.dumps, rows)))
    assert run.format == "llamafactory-jsonl"
    assert run.outcome == "completed"
    assert list(run.series["loss"].steps) == [10, 20]
    assert run.series["elapsed_time"].values[0] == 86_410
    assert run.series["loss"].where(1).line == 2


def test_detectron_rows_under_a_json_name() -> None:
    rows = [
        {"iteration": i, "total_loss": 4.0 - i / 50, "lr": 2e-5, "eta_seconds": 200.5, "loss_cls": 1.0}
        for i in range(19, 119, 20)
    ]
    rows.insert(3, {"iteration": 59, "bbox/AP": 12.5})
    run = one("metrics.json", "\n".join(map(json.dumps, rows)))
    assert run.format == "detectron2-json"
    assert run.series["bbox/AP"].role == "eval-metric"
    assert list(run.series["bbox/AP"].steps) == [59]


def test_mm_rows_with_a_first_line_of_environment() -> None:
    rows: list[dict[str, object]] = [{"env_info": "sys.platform: linux", "seed": 3}]
    for epoch in (1, 2):
        rows += [
            {"mode": "train", "epoch": epoch, "iter": i, "lr": 0.01, "loss": 1.5, "loss_cls": 0.5, "time": 0.3}
            for i in (50, 100)
        ]
        rows.append({"mode": "val", "epoch": epoch, "iter": 20, "lr": 0.01, "bbox_mAP": 0.1 * epoch})
    run = one("20240101_101010.log.json", "\n".join(map(json.dumps, rows)))
    assert list(run.series["train/loss"].steps) == [50, 100, 150, 200]
    assert run.series["val/bbox_mAP"].role == "eval-metric"


def test_mmengine_validation_rows_do_not_start_the_run_again() -> None:
    rows: list[dict[str, float]] = []
    for epoch in (1, 2, 3):
        rows += [
            {
                "lr": 0.01,
                "data_time": 0.1,
                "loss": 2.0 / epoch,
                "time": 0.3,
                "epoch": epoch,
                "iter": i,
                "memory": 900,
                "step": i,
            }
            for i in (epoch * 100 - 50, epoch * 100)
        ]
        rows.append({"coco/bbox_mAP": 0.1 * epoch, "data_time": 0.1, "time": 0.2, "step": epoch})
    run = one("vis_data/scalars.json", "\n".join(map(json.dumps, rows)))
    assert list(run.series["loss"].steps) == [50, 100, 150, 200, 250, 300]
    assert list(run.series["coco/bbox_mAP"].steps) == [100, 200, 300]


def test_bare_nan_in_rows_and_damaged_lines() -> None:
    text = '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": NaN}\n{"step": 3, "lo\n{"step": 4, "loss": Infinity}\n'
    run = one("log.jsonl", text)
    assert math.isnan(run.series["loss"].values[1])
    assert run.series["loss"].values[2] == math.inf
    assert run.notes == ("1 damaged lines were left out",)


def test_long_rows_and_nested_rows() -> None:
    long = "\n".join(
        json.dumps({"step": s, "metric": m, "value": v}) for s in (1, 2, 3) for m, v in (("loss", 1.0), ("acc", 0.5))
    )
    assert list(one("m.jsonl", long).series["loss"].steps) == [1, 2, 3]
    nested = "\n".join(json.dumps({"step": s, "train": {"loss": 1.0 / s}, "val": {"loss": 2.0 / s}}) for s in (1, 2, 3))
    run = one("m.jsonl", nested)
    assert run.series["train/loss"].role == "loss"
    assert run.series["val/loss"].role == "eval-loss"


def test_histories_of_lists_and_of_rows() -> None:
    keras = one("history.json", json.dumps({"loss": [1.0, 0.5, 0.4], "val_loss": [1.1, 0.9, 0.95]}))
    assert list(keras.series["val_loss"].steps) == [0, 1, 2]
    nested = one(
        "log.json", json.dumps({"config": {"lr": 1}, "history": [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}]})
    )
    assert nested.series["loss"].unit == "epoch"
    half = one("log.json", '[{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.5}, {"epoch": 3, "lo')
    assert list(half.series["loss"].values) == [2.0, 1.5]


def test_results_and_settings() -> None:
    results = one("all_results.json", '{"epoch": 3.0, "train_loss": 0.31, "train_runtime": 12.5, "eval_loss": NaN}')
    assert results.outcome == "completed"
    assert math.isnan(results.series["eval_loss"].values[0])
    settings = one(
        "config.json", '{\n  "model_type": "llama",\n  "hidden_size": 64,\n  "rope": {\n    "theta": 10000.0\n  }\n}'
    )
    assert not settings.series
    assert settings.settings["hidden_size"].where.line == 3
    assert settings.settings["rope.theta"].where.line == 5


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("data.json", [{"instruction": "add", "output": "3"}, {"instruction": "sub", "output": "1"}]),
        ("labels.json", {"0": "cat", "1": "dog"}),
        ("tokenizer_config.json", {"model_max_length": 512, "dropout": 0.1, "model": "x", "loss": 1}),
        ("coco.json", {"images": [{"id": 1, "width": 640}, {"id": 2, "width": 480}], "annotations": []}),
        ("package.json", {"name": "web", "version": "1.0.0"}),
        ("predictions.json", [{"id": 1, "score": 0.3}, {"id": 2, "score": 0.9}]),
        ("geo.json", [[1, 2], [3, 4]]),
        ("empty.json", {}),
    ],
)
def test_other_documents_are_no_runs(name: str, document: object) -> None:
    assert read(name, json.dumps(document)) == []


@pytest.mark.parametrize(
    "row", [{"text": "hello " * 60, "loss": 1.0, "step": 3}, {"level": "ERROR", "loss": 1.0, "step": 3}]
)
def test_rows_of_text_and_structured_logs_are_no_metrics(row: dict[str, object]) -> None:
    assert not [run for run in read("data.jsonl", "\n".join([json.dumps(row)] * 3)) if run.format == "jsonl"]


def test_half_a_document_without_rows_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="no whole JSON"):
        read("config.json", '{"lr": 0.1, "epochs"')


def test_deep_nesting_ends_in_a_sentence() -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read("deep.json", '{"a":' * 200_000)


def test_boosting_and_rllib() -> None:
    boosting = {"validation_0": {"logloss": [0.6, 0.5, 0.4]}, "validation_1": {"logloss": [0.6, 0.55, 0.5]}}
    assert len(one("evals.json", json.dumps(boosting)).series) == 2
    rows = [
        {
            "episode_reward_mean": float(i),
            "timesteps_total": i * 1000,
            "training_iteration": i,
            "info": {"learner": {"default_policy": {"learner_stats": {"kl": 0.01}}}},
            "config": {"lr": 0.1},
        }
        for i in range(1, 5)
    ]
    run = one("result.json", "\n".join(map(json.dumps, rows)))
    assert {s.role for s in run.series.values()} >= {"reward", "kl"}
    assert "config/lr" not in run.series


def test_a_history_saved_as_a_list_drops_the_summary_too() -> None:
    run = one("log_history.json", json.dumps(ROWS + END))
    assert "train_loss" not in run.series
