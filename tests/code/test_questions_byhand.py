"""Rates that the program writes into the optimizer. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.byhand import blown_up, out_of_step, zero_for_long

HEAD = """
import math
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(3200, 8), torch.randint(2, (3200,))), 32, shuffle=True)
net = nn.Linear(8, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
EPOCHS, WARM, PEAK = 5, 50, 0.1
total = EPOCHS * len(loader)
"""
FUNCTION = """
def rate(step):
    if step < WARM:
        return RISE
    done = SHARE
    return FALL
step = 0
for epoch in range(EPOCHS):
    for x, y in loader:
        for group in opt.param_groups:
            group["lr"] = rate(step)
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
        step += 1
"""
OF_EPOCHS = """
for epoch in range(40):
    lr = FALL
    for group in opt.param_groups:
        group["lr"] = lr
    for x, y in loader:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
"""
TRAINER = """
class Trainer:
    def __init__(self, net, opt, total):
        self.net, self.opt, self.total, self.step = net, opt, total, 0
    def rate(self):
        return 0.1 * SHARE
    def update(self, x, y):
        self.opt.param_groups[0]["lr"] = self.rate()
        self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
        self.step += 1
trainer = Trainer(net, opt, total)
for epoch in range(EPOCHS):
    for x, y in loader:
        trainer.update(x, y)
"""
LAMBDA = """
sched = torch.optim.lr_scheduler.LambdaLR(opt, FUNCTION)
for epoch in range(EPOCHS):
    for x, y in loader:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
        sched.step()
"""


def function(
    rise: str = "PEAK * (step + 1) / WARM",
    share: str = "(step - WARM) / (total - WARM)",
    fall: str = "0.5 * PEAK * (1 + math.cos(math.pi * done))",
) -> str:
    return HEAD + FUNCTION.replace("RISE", rise).replace("SHARE", share).replace("FALL", fall)


def of_epochs(fall: str) -> str:
    return HEAD + OF_EPOCHS.replace("FALL", fall)


CASES: list[tuple[Question, str]] = [
    (zero_for_long, function(rise="PEAK * (step // WARM)  # here")),
    (zero_for_long, function(rise="PEAK * int(step / WARM)  # here")),
    (zero_for_long, function()),
    (zero_for_long, function(rise="PEAK * step / WARM")),
    (zero_for_long, HEAD + LAMBDA.replace("FUNCTION", "lambda s: min(1, s // WARM)  # here\n    ")),
    (out_of_step, function(share="(step - WARM) / EPOCHS  # here")),
    (
        out_of_step,
        function(share="step / len(loader)", fall="PEAK * (1 - done)").replace(
            "loader)\n    r", "loader)  # here\n    r"
        ),
    ),
    (out_of_step, function(share="(step - WARM) / (total * len(loader))  # here")),
    (out_of_step, function()),
    (out_of_step, function(fall="PEAK * max(0.05, 1 - done)")),
    (out_of_step, function(fall="PEAK * 0.999 ** step")),
    (out_of_step, function(share="step", fall="PEAK * math.sqrt(WARM) / math.sqrt(done + 1)")),
    (out_of_step, function(share="(step % 100) / 100")),
    (
        out_of_step,
        function(share="min(1, (step - WARM) / 70)  # here", fall="1e-3 + 0.5 * PEAK * (1 + math.cos(math.pi * done))"),
    ),
    (out_of_step, function(fall="max(3e-3, PEAK * (1 - step / 137))  # here")),
    (
        out_of_step,
        function(
            rise="PEAK\n    if step >= 170:\n        return 1e-3",
            share="(step - WARM) / (170 - WARM)  # here",
            fall="PEAK - (PEAK - 1e-3) * done",
        ),
    ),
    (
        out_of_step,
        function(share="min(1, (step - WARM) / 300)", fall="1e-3 + 0.5 * PEAK * (1 + math.cos(math.pi * done))"),
    ),
    (
        out_of_step,
        function(share="min(1, (step - WARM) / 70)", fall="0.03 + 0.5 * PEAK * (1 + math.cos(math.pi * done))"),
    ),
    (out_of_step, function(share="0", fall="1e-3 if step > 160 else PEAK")),
    (out_of_step, function(share="0", fall="PEAK * 0.1 ** min(2, step // 80)")),
    (out_of_step, of_epochs("PEAK * (1 - epoch / EPOCHS)  # here")),
    (out_of_step, of_epochs("PEAK * (1 - epoch / 40)")),
    (out_of_step, of_epochs("PEAK * (0.1 ** (epoch // 15))")),
    (out_of_step, HEAD + TRAINER.replace("SHARE", "(1 - self.step / (100 * self.total))  # here")),
    (out_of_step, HEAD + TRAINER.replace("SHARE", "(1 - self.step / self.total)")),
    (blown_up, HEAD + TRAINER.replace("SHARE", "(1 + self.step / EPOCHS)  # here")),
    (blown_up, HEAD + TRAINER.replace("SHARE", "min(1, (self.step + 1) / WARM)")),
    (blown_up, HEAD + TRAINER.replace("SHARE", "1.05 ** self.step")),
]


@pytest.mark.parametrize(("question", "text"), CASES)
def test_rate(question: Question, text: str) -> None:
    assert answered(question, text) == marked(text)
