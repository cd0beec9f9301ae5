"""Regression targets that are large as they come, and those that grow with what is learned."""

from __future__ import annotations

import numpy as np
from tests.runs.curves import signs_of


def regression(mean: np.ndarray) -> dict[str, np.ndarray]:
    columns = {"correlation": np.full(len(mean), 0.8), "target_mean": mean, "target_std": np.abs(mean) / 2}
    return {f"objective9/mse/{name}": values for name, values in columns.items()}


def test_targets_on_a_raw_scale_are_seen() -> None:
    assert "live-targets-large" in signs_of(regression(np.linspace(48.0, 52.0, 40)))


def test_targets_that_are_bootstrapped_grow_and_are_no_raw_scale() -> None:
    assert "live-targets-large" not in signs_of(regression(-np.linspace(2.0, 60.0, 40)))
