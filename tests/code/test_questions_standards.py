"""Standardising by hand, and what is ranked. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.ranked import ranked_labels
from trainwreck.code.rehearsal.questions.standards import axes_apart, not_standard, put_together_wrongly

PROGRAM = """
import numpy as np
import torch, torch.nn as nn
rng = np.random.default_rng(0)
x = (5 + 2 * rng.normal(size=(500, 8))).astype(np.float32)
y = torch.from_numpy((x[:, 0] > 5).astype(np.float32))
mean = MEAN
std = STD
x = torch.from_numpy((x - mean) / std)
net = nn.Linear(8, 1)
opt = torch.optim.Adam(net.parameters())
for epoch in range(20):
    loss = nn.functional.binary_cross_entropy_with_logits(net(x[:400])[:, 0], y[:400])
    opt.zero_grad(); loss.backward(); opt.step()
def auc(score, y):
    order = torch.argsort(score)
    ranks = torch.empty(len(score))
    ranks[order] = torch.arange(1.0, len(score) + 1)
    n1 = (y > 0.5).sum()
    return (ranks[y > 0.5].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1))
with torch.no_grad():
    logit = net(x[400:])[:, 0]
    score = SCORE
    print(auc(score, y[400:]))
"""


def program(
    mean: str = "x[:400].mean(0)", std: str = "x[:400].std(0) + 1e-6", score: str = "torch.sigmoid(logit)"
) -> str:
    return PROGRAM.replace("MEAN", mean).replace("STD", std).replace("SCORE", score)


CASES: list[tuple[Question, str]] = [
    (not_standard, program(mean="x[:400].sum(0)  # here")),
    (not_standard, program(std="x[:400].var(axis=0)  # here")),
    (not_standard, program(std="np.sqrt(x[:400].var(axis=0) + 1e-6)")),
    (not_standard, program()),
    (put_together_wrongly, program().replace("(x - mean) / std)", "(x - mean) * std)  # here")),
    (put_together_wrongly, program().replace("(x - mean) / std)", "(x + mean) / std)  # here")),
    (put_together_wrongly, program().replace("(x - mean) / std)", "std / (x - mean))  # here")),
    (put_together_wrongly, program()),
    (put_together_wrongly, program().replace("(x - mean) / std)", "(x - mean) / std * std + mean)")),
    (axes_apart, program(mean="x[:400].mean(axis=1, keepdims=True)[:8].T  # here")),
    (axes_apart, program(std="x[:400].std(axis=1).mean()  # here").replace(".mean()  #", "[:8]  #")),
    (axes_apart, program()),
    (axes_apart, program("x.mean()", "x.std(0)")),
    (ranked_labels, program(score="(logit > 0).float()  # here")),
    (ranked_labels, program(score="torch.sigmoid(logit).round()  # here")),
    (ranked_labels, program()),
    (ranked_labels, program(score="logit - logit.min()")),
]


@pytest.mark.parametrize(("question", "text"), CASES)
def test_standard(question: Question, text: str) -> None:
    assert answered(question, text) == marked(text)
