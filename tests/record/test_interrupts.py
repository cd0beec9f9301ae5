"""An interrupt that comes while the process forks reaches the program, once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import recorded

from trainwreck.record.inside import interrupts

PROGRAM = """
import os, signal, torch
from torch import nn
sent = []
def interrupt():
    if not sent:
        sent.append(1)
        os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
os.register_at_fork(after_in_parent=interrupt)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
def fit(steps):
    for i in range(steps):
        loss = model(torch.randn(8, 4)).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
try:
    fit(40)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", len(sent))
fit(3)
print("and on")
"""


@pytest.fixture
def python_handles_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_fork_of_ours_hands_it_on(tmp_path: Path) -> None:
    """Python itself throws away what is raised in a function around a fork."""
    assert recorded(PROGRAM, tmp_path).splitlines() == ["interrupted 1", "and on"]


@pytest.mark.usefixtures("python_handles_interrupts")
def test_what_comes_around_a_fork_of_the_program_is_sent_again() -> None:
    kept = interrupts.PutOff()
    kept.begin()
    os.kill(os.getpid(), signal.SIGINT)
    came = kept.end()
    assert came == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    interrupts.again(came)
    with pytest.raises(KeyboardInterrupt):
        time.sleep(5)


@pytest.mark.usefixtures("python_handles_interrupts")
def test_handlers_are_back_when_nothing_came() -> None:
    with interrupts.put_off():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
