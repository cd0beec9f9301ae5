"""The recorder keeps to its share of the time: dear samples become rarer, norms are estimated from parts."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from trainwreck.record.inside import pace  # noqa: E402
from trainwreck.record.inside.names import Names  # noqa: E402
from trainwreck.record.inside.watched import Watched  # noqa: E402


class Clock:
    """Stands for the processor time of the process."""

    def __init__(self) -> None:
        self.now = 1.0

    def process_time(self) -> float:
        return self.now


def strides(monkeypatch: pytest.MonkeyPatch, sample: float, step: float, steps: int = 4000) -> list[int]:
    """The stride after each sampled step, where a sample costs ``sample`` seconds and a step ``step``."""
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    mine, found = pace.Pace(), []
    for number in range(1, steps):
        clock.now += step
        if number % mine.stride == 0:
            began = mine.begin(True)
            clock.now += sample
            mine.end(began)
            mine.adapt(number)
            found.append(mine.stride)
    return found


def test_samples_become_rarer_where_they_are_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    found = strides(monkeypatch, sample=0.005, step=0.01)
    assert found[: pace.DENSE_STEPS // pace.STRIDE - 1] == [20] * 19  # the first ones stay
    assert found[-1] == 80  # 0.005 of 0.8 seconds: under a hundredth, and 40 steps were not


def test_samples_stay_where_they_are_cheap_and_are_never_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(strides(monkeypatch, sample=0.001, step=0.01)) == {20}
    assert strides(monkeypatch, sample=1.0, step=0.001)[-1] == pace.WIDEST


def test_an_alarm_makes_samples_dense_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "time", Clock())
    mine = pace.Pace()
    mine.stride = 160
    mine.reset()
    assert mine.stride == pace.STRIDE


def trained(steps: int = 9) -> tuple[Any, Watched]:
    """A model after a backward, and what is known of its optimizer, as after so many steps."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256))
    watched = Watched(torch.optim.SGD(model.parameters(), lr=0.1), 0, Names())
    model(torch.randn(16, 256)).square().mean().backward()
    watched.gradient_norms()
    watched.steps = steps
    return model, watched


def test_norms_of_parts_stand_for_the_whole() -> None:
    model, watched = trained()
    whole = math.hypot(*(float(p.grad.norm()) for p in model.parameters()))
    watched.cut(8)
    for p in model.parameters():
        p.grad *= 3
    total, columns, bad = watched.gradient_norms(8)
    assert total is not None
    assert columns is not None
    assert bad is None
    assert abs(total - 3 * whole) < 1e-3 * whole
    assert len(columns[0]) == 4


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_named_whichever_look_finds_it(value: float) -> None:
    model, watched = trained()
    watched.cut(8)
    assert watched.guarded() is None
    model[0].bias.grad[3] = value
    for bad in (watched.gradient_norms(8)[2], watched.guarded()):
        assert bad is not None
        assert bad[0].endswith("0.bias")
        assert not math.isfinite(bad[1])


def test_gradients_that_have_gone_are_no_fault() -> None:
    model, watched = trained()
    watched.cut(8)
    model[0].bias.grad = None
    total, _, bad = watched.gradient_norms(8)
    assert total is not None
    assert bad is None
    assert watched.without_grad[1] == 1
