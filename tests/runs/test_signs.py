"""What curves show: sick ones are named, healthy ones stay quiet."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.runs.curves import causes_of, falling, noise, run_of, signs_of, told

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, Setting
from trainwreck.runs.signs import sightings

NAN = math.nan
X = np.arange

SICK = {
    "nan after a rise": (
        {"loss": [*falling(50, 3, 2, 20), 2.5, 4, 30, 900, *[NAN] * 20]},
        {"nan-loss", "nan-after-rise"},
    ),
    "nan from the first step": ({"loss": [NAN] * 20}, {"nan-loss", "nan-from-first-step"}),
    "nan out of the blue": ({"loss": [*(falling(50, 3, 2, 20) + noise(50, 0.02)), *[NAN] * 20]}, {"nan-sudden"}),
    "nan that heals": ({"loss": [2.0] * 10 + [NAN] + [1.9] * 10}, {"nan-loss", "nan-transient"}),
    "nan of one term first": (
        {"loss": [3.0] * 10 + [NAN] * 5, "loss_a": [1.0] * 10 + [NAN] * 5, "loss_b": [1.0] * 15, "loss_c": [1.0] * 15},
        {"nan-one-term-first"},
    ),
    "nan hidden as zero": (
        {"loss": [*falling(10, 2, 1, 5), *[0.0] * 20], "grad_norm": [1.0] * 10 + [NAN] * 20},
        {"zero-loss", "nan-loss", "nan-grad-with-zero-loss"},
    ),
    "a gradient that breaks before the loss": (
        {"loss": [*falling(50, 3, 2, 20), *[NAN] * 20], "grad_norm": [0.5] * 49 + [NAN] * 21},
        {"nan-loss", "nan-gradient-before-loss"},
    ),
    "an error called mse": ({"mse": [NAN] * 8, "val_r2": [NAN] * 8}, {"nan-loss"}),
    "divergence": (
        {"loss": np.concatenate([falling(200, 4, 2, 50), 2 + 0.03 * X(100)])},
        {"loss-rises", "loss-diverges"},
    ),
    "overshoot of three lines": ({"lm loss": [12.5, 12.5, 40.7]}, {"early-overshoot"}),
    "jump to another level": (
        {"loss": np.concatenate([falling(150, 3, 1, 30), 1.6 + noise(150, 0.02)]) + noise(300, 0.02)},
        {"loss-jump"},
    ),
    "ends above its start": ({"loss": 2.3 + 0.05 * X(40) + noise(40, 0.05)}, {"loss-above-start"}),
    "loss in raw units": ({"loss": falling(50, 3e9, 2e9, 20)}, {"loss-scale-wrong"}),
    "binary task at ln 2": (
        {"loss": 0.6935 + noise(50, 0.0005), "val_accuracy": [0.5] * 50},
        {"plateau-ln-num-classes", "no-learning", "accuracy-at-chance"},
    ),
    "ten classes at ln 10": ({"train_loss": 2.303 + noise(30, 0.001)}, {"plateau-ln-num-classes", "stuck"}),
    "vocabulary of gpt-2": ({"loss": 10.825 + noise(100, 0.01)}, {"plateau-ln-num-classes"}),
    "floor of a doubled softmax": (
        {"train_loss": 1.475 + 0.8 * np.exp(-X(30) / 4), "val_acc": 0.98 - 0.6 * np.exp(-X(30) / 3)},
        {"plateau-double-softmax-floor"},
    ),
    "never moves": ({"loss": [1.0994] * 12}, {"loss-constant", "no-learning", "stuck"}),
    "creeps": ({"loss": 2.3 - 0.05 * X(100) / 100 + noise(100, 0.002)}, {"loss-creeps"}),
    "late start": (
        {"loss": np.concatenate([3.3 + noise(25, 0.02), falling(15, 3.3, 1.5, 5)]), "lr": [0.0] * 25 + [3e-3] * 15},
        {"first-steps-no-learning", "lr-zero-in-warmup"},
    ),
    "overfitting": (
        {"loss": falling(40, 1, 0.01, 8), "val_loss": np.concatenate([falling(10, 1, 0.5, 4), 0.5 + 0.02 * X(30)])},
        {"eval-loss-rises-train-falls"},
    ),
    "validation explodes": (
        {"train_loss": falling(30, 1, 0.3, 8), "val_loss": np.where(X(30) == 20, 80, 0.6) + noise(30, 0.02)},
        {"val-loss-explodes"},
    ),
    "no box in the validation set": (
        {
            "train/box_loss": [0.12, 0.11, 0.1],
            "val/box_loss": [0.0] * 3,
            "val/obj_loss": [0.01] * 3,
            "metrics/mAP_0.5": [0.0] * 3,
        },
        {"val-loss-zero", "zero-map"},
    ),
    "huge gradient": ({"loss": falling(100, 3, 2, 30), "grad_norm": 5e4 + noise(100, 5e3)}, {"grad-norm-huge"}),
    "gradient explodes": (
        {
            "loss": np.concatenate([falling(100, 3, 2, 30), 2 + 0.1 * X(30)]),
            "grad_norm": np.concatenate([np.ones(100), np.exp(X(30) / 3)]),
        },
        {"grad-norm-exploding"},
    ),
    "gradient spikes": (
        {
            "loss": falling(300, 3, 1, 50),
            "grad_norm": np.where(np.isin(X(300), [60, 120, 200, 250]), 20, 1 + noise(300, 0.05)),
        },
        {"grad-norm-spikes-recovered"},
    ),
    "gradient pinned": ({"loss": falling(40, 3, 1, 9), "grad_norm": [1.0] * 40}, {"grad-norm-pinned"}),
    "part without gradient": ({"loss": falling(9, 1, 0.5, 3), "encoder_grad_norm": [0.0] * 9}, {"part-grad-norm-zero"}),
    "rate is zero": ({"loss": 2 + noise(30, 0.05), "lr": [0.0] * 30}, {"lr-zero-throughout"}),
    "rate dies early": (
        {"loss": falling(100, 3, 1.5, 20), "lr": np.maximum(0, 1e-3 * (1 - X(100) / 40))},
        {"lr-zero-early"},
    ),
    "rate falls by epochs of batches": (
        {"loss": 1.16 + noise(10, 0.001), "lr": 3e-3 * 10.0 ** (-4 * X(10))},
        {"lr-decays-too-fast"},
    ),
    "loss scale collapses": (
        {"loss": falling(60, 3, 2, 20), "loss_scale": [65536.0] * 30 + [65536 / 2.0 ** min(k, 17) for k in range(30)]},
        {"loss-scale-collapse"},
    ),
    "skips all along": (
        {
            "loss": falling(60, 3, 2, 20),
            "number of skipped iterations": (X(60) % 4 == 0).astype(float),
            "loss scale": [1024.0] * 60,
        },
        {"fp16-overflow-skips"},
    ),
    "entropy gone": (
        {"reward": 0.2 + noise(60, 0.01), "entropy": 2.4 * np.exp(-X(60) / 4)},
        {"entropy-drop", "entropy-near-zero"},
    ),
    "negative entropy of sb3": (
        {"rollout/ep_rew_mean": 20 + noise(60, 1), "train/entropy_loss": -1.4 * np.exp(-X(60) / 6)},
        {"entropy-drop"},
    ),
    "deviation explodes": (
        {"rollout/ep_rew_mean": -800 + noise(60, 50), "train/std": np.exp(X(60) / 12)},
        {"action-std-explosion"},
    ),
    "one kl spike": (
        {"rollout/ep_rew_mean": X(60) * 1.0, "train/approx_kl": np.where(X(60) == 30, 0.9, 0.01)},
        {"kl-spike-recovered"},
    ),
    "many kl spikes": (
        {"rollout/ep_rew_mean": X(60) * 1.0, "train/approx_kl": np.where(X(60) % 10 == 5, 0.5, 0.01)},
        {"kl-spikes"},
    ),
    "kl runs away": ({"reward": 0.5 + noise(50, 0.05), "kl": 0.01 * np.exp(X(50) / 6)}, {"kl-grows"}),
    "kl is zero": ({"reward": 0.5 + noise(30, 0.01), "kl": [0.0] * 30}, {"zero-kl"}),
    "reward does not move": ({"episode_reward": -200 + noise(200, 0.5)}, {"reward-stuck"}),
    "reward falls back": (
        {"reward": np.concatenate([np.linspace(0, 1, 30), np.linspace(1, 0.05, 10), [0.05] * 20]) + noise(60, 0.03)},
        {"reward-collapse"},
    ),
    "no spread": (
        {"reward": [0.0] * 20, "reward_std": [0.0] * 20, "frac_reward_zero_std": [1.0] * 20},
        {"reward-constant", "reward-std-zero", "reward-groups-without-spread"},
    ),
    "format never right": (
        {"reward": X(20) / 20.0, "rewards/format_reward/mean": [0.0] * 20, "rewards/accuracy/mean": X(20) / 20.0},
        {"format-reward-zero"},
    ),
    "critic off by thousands": (
        {
            "rollout/ep_rew_mean": X(60) * 1.0,
            "train/value_loss": 2e5 + noise(60, 1e4),
            "train/explained_variance": noise(60, 0.01),
        },
        {"value-loss-large", "explained-variance-low"},
    ),
    "chosen answers fall": (
        {"loss": falling(60, 0.69, 0.2, 20), "rewards/margins": X(60) / 20.0, "rewards/chosen": -X(60) / 20.0},
        {"chosen-likelihood-falls"},
    ),
    "pairs at ln 2": (
        {"loss": 0.6931 + noise(30, 0.0005), "rewards/margins": noise(30, 0.001), "rewards/chosen": noise(30, 0.001)},
        {"plateau-ln-2"},
    ),
    "one code in use": (
        {"recon_loss": falling(20, 0.2, 0.02, 3), "vq_loss": falling(20, 1, 0.1, 3), "perplexity": [1.1] * 20},
        {"codebook-perplexity-low"},
    ),
    "latent ignored": (
        {"recon_loss": falling(40, 200, 120, 5), "kl_loss": 5 * np.exp(-X(40) / 2), "loss": falling(40, 205, 120, 5)},
        {"kl-term-near-zero"},
    ),
    "discriminator wins": ({"d_loss": np.exp(-X(60) / 5), "g_loss": 1 + 0.3 * X(60)}, {"discriminator-wins"}),
    "nothing is ever found": (
        {"loss": falling(20, 1, 0.1, 4), "val_dice": [0.0] * 20},
        {"trivial-solution"},
    ),
    "score that never settles": (
        {"train_loss": 1 + 0.6 * np.sin(X(40) * 1.9), "val_acc": 0.5 + 0.3 * np.sin(X(40) * 1.9)},
        {"train-unstable"},
    ),
    "rate of a millionth": ({"loss": 1.9 + noise(30, 0.1), "lr": [1e-7] * 30}, {"lr-tiny"}),
    "slower and slower": (
        {"loss": falling(100, 3, 1, 20), "samples_per_second": 100 * np.exp(-X(100) / 60)},
        {"throughput-decays"},
    ),
}


@pytest.mark.parametrize("name", SICK)
def test_sick_curve_is_named(name: str) -> None:
    curves, wanted = SICK[name]
    assert wanted <= signs_of(curves)


def healthy(seed: int) -> dict[str, dict[str, object]]:
    """Runs that go well, each with something that looks alarming."""
    n = lambda count, size: noise(count, size, seed)  # noqa: E731
    warm = np.minimum(X(500) / 50, 1)
    return {
        "language model": {
            "loss": falling(500, 10.8, 3.2, 60) + n(500, 0.05),
            "grad_norm": 1 + np.abs(n(500, 0.3)),
            "lr": warm * 3e-4 * (0.5 + 0.5 * np.cos(np.pi * X(500) / 500)),
        },
        "noisy fine-tuning": {"loss": 1.4 - 0.3 * X(200) / 200 + n(200, 0.25)},
        "heavy tails": {"loss": np.exp(-X(400) / 100) * np.exp(n(400, 0.6))},
        "near zero at the end": {"loss": falling(1000, 2.3, 0.01, 100) * np.exp(n(1000, 1.0))},
        "denoising": {"loss": 0.03 + 0.9 * np.exp(-X(400) / 5) + np.abs(n(400, 0.01))},
        "grpo that starts at zero": {
            "loss": np.concatenate([[0], np.abs(n(99, 0.001))]),
            "reward": 0.4 + (1 - np.exp(-X(100) / 30)) + n(100, 0.1),
            "reward_std": 0.4 + n(100, 0.05),
            "kl": 0.001 + 0.0004 * X(100),
            "grad_norm": 0.2 + np.abs(n(100, 0.1)),
        },
        "ppo": {
            "rollout/ep_rew_mean": -200 + 350 * (1 - np.exp(-X(60) / 20)) + n(60, 5),
            "train/loss": n(60, 0.1),
            "train/entropy_loss": -1.4 + 0.3 * X(60) / 60,
            "train/approx_kl": 0.008 + np.abs(n(60, 0.003)),
            "train/explained_variance": [NAN] * 5 + list(np.minimum(0.9, X(55) / 30)),
        },
        "dqn with rising loss": {
            "rollout/ep_rew_mean": 10 + 2.5 * X(80) + n(80, 10),
            "train/loss": 0.1 + 0.02 * X(80) + np.abs(n(80, 0.2)),
            "rollout/exploration_rate": np.maximum(0.05, 1 - X(80) / 20),
        },
        "adversaries at rest": {"d_loss": 1.3 + n(200, 0.1), "g_loss": 0.8 + n(200, 0.1)},
        "vae with annealed kl": {
            "loss": falling(50, 550, 110, 5),
            "recon_loss": falling(50, 549, 85, 5),
            "kl_loss": 25 * (1 - np.exp(-X(50) / 3)),
        },
        "detector": {
            "train/box_loss": falling(100, 1.7, 1.0, 30),
            "train/cls_loss": falling(100, 3, 0.5, 20),
            "val/box_loss": falling(100, 1.8, 0.95, 20) + n(100, 0.02),
            "val/cls_loss": falling(100, 3, 0.45, 10) + n(100, 0.03),
            "val/dfl_loss": 1.2 + 0.1 * X(100) / 100,
            "metrics/mAP50(B)": 0.9 - 0.85 * np.exp(-X(100) / 15),
        },
        "negative likelihood": {"loss": falling(100, 1.0, -2.5, 20) + n(100, 0.05)},
        "curriculum": {
            "loss": 0.001 + 0.0001 * X(300) + n(300, 0.0003),
            "lr": 1e-4 * (1 - X(300) / 300),
            "val_loss": (range(0, 300, 30), falling(10, 0.03, 0.014, 3)),
        },
        "rate rounded to zero": {"loss": falling(90, 4.6, 0.4, 20), "lr": np.where(X(90) < 75, 1e-3, 0)},
        "one gradient spike": {
            "loss": falling(300, 3, 1, 50) + n(300, 0.03),
            "grad_norm": np.where(X(300) == 200, 9, 1 + np.abs(n(300, 0.1))),
        },
        "three epochs": {"loss": [0.9, 0.5, 0.4], "val_loss": [0.7, 0.6, 0.62]},
        "fp16 search": {
            "lm loss": [12.4, 12.0, 9.0, 8.5, 8.1, 7.9, 7.7, 7.6],
            "loss scale": [2.0**23, 2.0**20, *[16384.0] * 6],
            "number of skipped iterations": [10.0, 9, 0, 0, 0, 0, 0, 0],
        },
    }


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_healthy_runs_have_no_cause_and_few_symptoms(seed: int) -> None:
    chatter = 0
    for name, curves in healthy(seed).items():
        assert causes_of(curves) == {}, name
        chatter += len(told(signs_of(curves)))
    assert chatter / len(healthy(seed)) <= 0.8


def test_fp16_search_at_the_start_is_said_as_such() -> None:
    signs = signs_of(healthy(0)["fp16 search"])
    assert "fp16-initial-skips" in signs
    assert "fp16-overflow-skips" not in signs


def test_onset_and_best_checkpoint_of_overfitting() -> None:
    curves = {"loss": falling(20, 1, 0.05, 4), "val_loss": [*falling(8, 1, 0.5, 2), *(0.51 + 0.04 * X(12))]}
    found = next(e for e in sightings([run_of(curves, "epoch")]) if e.sign == "eval-loss-rises-train-falls")
    assert found.where.step == 8
    assert found.value["onset"] == 8
    assert found.value["best"] == pytest.approx(curves["val_loss"][8])


def test_number_of_classes_may_come_from_a_setting() -> None:
    setting = {"model.num_labels": Setting("model.num_labels", 7, Where("config"))}
    curves = {"loss": math.log(7) + noise(40, 0.02)}
    assert "plateau-ln-num-classes" in signs_of(curves, settings=setting)
    assert "plateau-ln-num-classes" not in signs_of(curves)


def test_rate_that_jumps_at_a_seam() -> None:
    rate = np.concatenate([1e-3 * (1 - X(50) / 100), 1e-3 * (1 - X(50) / 100)])
    curves = {"loss": falling(100, 2, 1, 30), "lr": rate}
    assert "lr-jump-at-resume" in signs_of(curves, seams=(49.0,))
    assert "lr-jump-at-resume" not in signs_of({**curves, "lr": 1e-3 * (1 - X(100) / 100)}, seams=(49.0,))


def test_attempts_that_go_on_are_one_curve() -> None:
    first = run_of({"loss": (range(5), [3, 2, 1.5, 1.2, 1.0])}, attempt=1, of_attempts=2, seams=(4.0,))
    second = run_of({"loss": (range(5, 9), [2.5, 2.4, 2.3, 2.2])}, attempt=2, of_attempts=2)
    signs = {e.sign for e in sightings([first, second])}
    assert "loss-jump-at-resume" in signs
    assert "appended-runs" not in signs


@pytest.mark.parametrize(
    ("kind", "sign"),
    [
        ("time-limit", "time-limit-message"),
        ("cancelled", "cancelled-message"),
        ("host-oom-kill", "killed-message"),
        ("interrupted", "interrupted-message"),
    ],
)
def test_an_event_that_ends_a_run_is_told(kind: str, sign: str) -> None:
    event = Event(kind, "as the log says", Where("log", path="slurm.out", line=9))
    assert sign in signs_of({"loss": [1.0, 0.9]}, events=[event])


def test_a_signal_that_follows_a_cancellation_is_not_told_twice() -> None:
    events = [Event(kind, "…", Where("log", path="slurm.out", line=9)) for kind in ("cancelled", "terminated")]
    assert told(signs_of({"loss": falling(30, 2, 1, 5)}, events=events)) == {"cancelled-message"}


def test_no_curves_no_numpy_needed() -> None:
    assert sightings([run_of({})]) == []


def test_a_cyclic_schedule_that_touches_zero_is_not_dead() -> None:
    restarts = 4e-3 * 0.5 * (1 + np.cos(np.pi * (np.arange(800) % 200) / 200))
    restarts[-1] = 0.0
    signs = signs_of({"loss": falling(800, 3, 1.5, 20), "lr": restarts})
    assert not signs & {"lr-zero-early", "lr-decays-too-fast"}
