"""Signs over the outputs of modules."""

from __future__ import annotations

import numpy as np
from tests.runs.curves import signs_of


def outputs(spread: np.ndarray, size: float) -> dict[str, np.ndarray]:
    flat = np.full(len(spread), size)
    return {"modules/net.proj.spread": spread, "modules/net.proj.max": flat, "modules/net.proj.min": -flat / 2}


def test_rows_that_become_one_are_seen() -> None:
    collapse = np.geomspace(0.9, 0.002, 30)
    assert "live-rows-alike" in signs_of(outputs(collapse, 0.8))


def test_a_spread_that_settles_beside_outputs_of_its_size_is_no_collapse() -> None:
    settling = np.concatenate([np.geomspace(22.8, 0.4, 15), np.full(15, 0.35)])
    assert "live-rows-alike" not in signs_of(outputs(settling, 4.0))


def test_a_range_that_is_full_from_the_start_is_seen_and_one_that_fills_later_is_not() -> None:
    full = np.full(20, 0.9)
    later = np.concatenate([np.linspace(0.0, 0.3, 10), np.full(10, 0.9)])
    assert "live-units-saturated" in signs_of({"modules/net.act.saturated": full})
    assert "live-units-saturated" not in signs_of({"modules/net.act.saturated": later})


def two_terms(small: np.ndarray, large: np.ndarray) -> dict[str, np.ndarray]:
    ones = np.ones(len(small))
    return {
        "objective1/weight/task": ones,
        "objective1/weight/other": ones,
        "term/task": small,
        "term/other": large,
    }


def test_a_term_that_outweighs_another_from_the_start_is_seen() -> None:
    assert "live-term-dominates" in signs_of(two_terms(np.full(40, 0.7), np.linspace(900, 600, 40)))


def test_a_term_that_is_solved_by_now_was_not_drowned() -> None:
    assert "live-term-dominates" not in signs_of(two_terms(np.geomspace(1.4, 0.002, 40), np.full(40, 0.69)))


def test_the_loss_of_a_policy_gradient_is_no_measure_of_progress() -> None:
    rising = {"loss": np.concatenate([np.linspace(8, 4, 60), np.linspace(4, 16, 60)])}
    alone = signs_of(rising)
    assert alone & {"loss-rises", "loss-diverges", "loss-above-start"}
    told = signs_of({**rising, "policy/products": np.ones(120)})
    assert not told & {"loss-rises", "loss-diverges", "loss-above-start"}
