"""Signs over settings of optimizers: gradients that are clipped, while scaled or to next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.runs.curves import run_of

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event
from trainwreck.runs.signs import _settings
from trainwreck.runs.signs._curve import View

PLACE = Where("code", path="train.py", line=7)
COUNT = 60


def signs(curves: dict[str, Any], *events: Event) -> set[str]:
    optimizer = Event("optimizer", "SGD", PLACE, {"optimizer": "SGD", "index": 0, "settings": [{"lr": 0.1}]})
    run = run_of({"lr": np.full(COUNT, 0.1), **curves}, events=[optimizer, *events])
    return {e.sign for e in _settings.find(View(run))}


@pytest.mark.parametrize(("late", "told"), [(1.0, True), (1e-5, False)])
def test_small_steps_of_a_rate_that_was_taken_back_are_no_clipping(late: float, told: bool) -> None:
    rates = np.concatenate([np.full(20, 0.1), np.full(40, 0.1 * late)])
    ratios = 1e-6 * np.ones(COUNT) if told else np.where(rates > 0.01, 1e-3, 1e-8)
    curves = {"lr": rates, "grad_norm": np.full(COUNT, 1.0), "update_ratio": ratios}
    assert ("live-gradient-clipped-always" in signs(curves)) is told


SCALER = Event("scaled-until-step", "scaled", PLACE, {"value": COUNT})


@pytest.mark.parametrize(
    ("norms", "scales", "events", "told"),
    [
        (1.0 / 4096, 4096.0, (SCALER,), True),
        (1.0 / 4096, 4096.0, (), False),
        (1.0, 1.0, (SCALER,), False),
    ],
)
def test_a_norm_that_is_one_with_the_scale_in_it(
    norms: float, scales: float, events: tuple[Event, ...], told: bool
) -> None:
    curves = {
        "grad_norm": np.full(COUNT, norms),
        "update_ratio": np.full(COUNT, 1e-3),
        "amp/loss_scale": np.full(COUNT, scales),
    }
    assert ("live-clipped-while-scaled" in signs(curves, *events)) is told


def test_norms_that_vary_were_not_clipped() -> None:
    norms = np.geomspace(1.0, 0.1, COUNT) / 4096
    curves = {
        "grad_norm": norms,
        "update_ratio": np.full(COUNT, 1e-3),
        "amp/loss_scale": np.full(COUNT, 4096.0),
    }
    assert "live-clipped-while-scaled" not in signs(curves, SCALER)
