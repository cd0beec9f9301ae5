"""Signs do not depend on units, on how often a run is logged, nor on its length; and never fail on odd values."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.runs.curves import causes_of, falling, run_of, signs_of

from trainwreck.runs.signs import sightings

ODD = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, 1.0]),
)
NAMES = st.sampled_from(
    [
        *("loss", "eval_loss", "grad_norm", "lr", "loss_scale", "reward", "reward_std", "kl", "entropy", "train/std"),
        *("val_acc", "d_loss", "g_loss", "kl_loss", "recon_loss", "perplexity", "rewards/chosen", "rewards/margins"),
        *("train/value_loss", "skipped", "samples_per_second", "gpu_mem", "format_reward", "explained_variance"),
        *("mAP50", "mse", "train/box_loss"),
    ]
)
RELAXED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@RELAXED
@given(st.dictionaries(NAMES, st.lists(ODD, max_size=40), max_size=6))
def test_any_values_are_survived(curves: dict[str, list[float]]) -> None:
    for item in sightings([run_of(curves)]):
        assert item.text
        assert item.to_json()


def shapes(seed: int, count: int = 300) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    scatter = rng.normal(0, 0.02, count)
    x = np.arange(count)
    return {
        "falls": falling(count, 4, 1, count / 8) * (1 + scatter),
        "diverges": np.concatenate(
            [falling(count // 2, 4, 2, count / 8), 2 + 6 * np.arange(count - count // 2) / count]
        )
        * (1 + scatter),
        "jumps": np.where(x < count // 2, falling(count, 4, 1, count / 16), 2.0) * (1 + scatter),
        "still": 1.7 * (1 + scatter / 10),
    }


CARE = {
    "loss-rises",
    "loss-diverges",
    "loss-jump",
    "no-learning",
    "stuck",
    "loss-above-start",
    "loss-falls",
    "loss-spike-recovered",
}


@RELAXED
@given(
    st.integers(0, 40),
    st.sampled_from(["falls", "diverges", "jumps", "still"]),
    st.sampled_from([0.07, 30.0, 1e3]),
)
def test_units_do_not_matter(seed: int, shape: str, factor: float) -> None:
    values = shapes(seed)[shape]
    assert signs_of({"loss": values}) & CARE == signs_of({"loss": values * factor}) & CARE


@RELAXED
@given(st.integers(0, 40), st.sampled_from(["falls", "diverges", "jumps", "still"]), st.sampled_from([2, 5, 10]))
def test_the_logging_interval_does_not_matter(seed: int, shape: str, every: int) -> None:
    values = shapes(seed, 1000)[shape]
    thin = (range(0, 1000, every), values[::every])
    wanted = {"loss-rises", "loss-diverges", "loss-jump", "no-learning", "loss-falls"}
    assert signs_of({"loss": values}) & wanted == signs_of({"loss": thin}) & wanted


@RELAXED
@given(st.integers(0, 40), st.sampled_from([60, 300, 3000, 20000]))
def test_length_does_not_matter(seed: int, count: int) -> None:
    found = {shape: signs_of({"loss": values}) for shape, values in shapes(seed, count).items()}
    assert "loss-diverges" in found["diverges"]
    assert "loss-falls" in found["falls"]
    assert "no-learning" in found["still"]
    assert "loss-jump" in found["jumps"]


@RELAXED
@given(
    st.integers(0, 10_000),
    st.sampled_from([6, 10, 20, 40, 100, 400]),
    st.floats(0.01, 0.12),
    st.floats(0.05, 0.7),
)
def test_a_falling_noisy_loss_is_never_blamed(seed: int, count: int, scatter: float, end: float) -> None:
    rng = np.random.default_rng(seed)
    loss = falling(count, 2.0, 2.0 * end, count / 6) * np.exp(rng.normal(0, scatter, count))
    confident = {k: v for k, v in causes_of({"loss": loss}).items() if v >= 0.3}
    assert confident == {}


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_too_few_points_say_nothing_of_a_trend(count: int) -> None:
    curves = {"loss": [2.0, 2.1, 2.2][:count], "grad_norm": [1.0, 1.1, 1.2][:count], "lr": [1e-4] * count}
    assert causes_of(curves) == {}


def test_a_hundred_thousand_points_take_a_third_of_a_second() -> None:
    rng = np.random.default_rng(0)
    count = 100_000
    run = run_of(
        {
            "loss": falling(count, 10, 3, 5000) + rng.normal(0, 0.1, count),
            "grad_norm": 1 + np.abs(rng.normal(0, 0.3, count)),
            "lr": 1e-3 * (1 - np.arange(count) / count),
        }
    )
    sightings([run_of({"loss": [1.0, 0.9]})])  # the first call imports numpy
    start = time.process_time()
    sightings([run])
    assert time.process_time() - start < 0.3
