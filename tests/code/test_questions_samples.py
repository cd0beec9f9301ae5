"""Samples of one group on both sides of a split. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions.samples import divided_at_random

REPEATED = """
import numpy as np
import torch, torch.nn as nn
rng = np.random.default_rng(0)
who = np.repeat(np.arange(50), 20)
own = rng.normal(size=(50, 8))
x = (own[who] + 0.3 * rng.normal(size=(1000, 8))).astype(np.float32)
y = LABEL
SPLIT
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
for epoch in range(20):
    order = torch.randperm(len(x_tr))
    for pick in order.split(32):
        loss = nn.functional.cross_entropy(net(x_tr[pick]), y_tr[pick])
        opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad():
    print((net(x_te).argmax(1) == y_te).float().mean())
"""
LOOPS = """
import numpy as np
import torch, torch.nn as nn
rng = np.random.default_rng(0)
rows, marks, who = [], [], []
for k in range(50):
    gain = rng.uniform(0.5, 2.0)
    state = rng.normal(size=8)
    for _ in range(20):
        state = 0.9 * state + rng.normal(size=8)
        rows.append(MADE)
        marks.append(MARK)
        who.append(k)
x, y, who = np.stack(rows).astype(np.float32), np.array(marks), np.array(who)
SPLIT
""" + REPEATED.partition("SPLIT")[2]
ROWS = """order = rng.permutation(len(x))  # here
x_tr, y_tr = torch.from_numpy(x[order[:800]]), torch.from_numpy(y[order[:800]])
x_te, y_te = torch.from_numpy(x[order[800:]]), torch.from_numpy(y[order[800:]])"""
GROUPS = """order = rng.permutation(50)
held = np.isin(who, order[:10])
x_tr, y_tr = torch.from_numpy(x[~held]), torch.from_numpy(y[~held])
x_te, y_te = torch.from_numpy(x[held]), torch.from_numpy(y[held])"""
ORDERED = """x_tr, y_tr = torch.from_numpy(x[:800]), torch.from_numpy(y[:800])
x_te, y_te = torch.from_numpy(x[800:]), torch.from_numpy(y[800:])"""
LABEL = "(own[:, 0] > 0).astype(np.int64)[who]"


def clean(text: str) -> str:
    return text.replace("  # here", "")


def loops(split: str, made: str = "gain * rng.normal(size=8)", mark: str = "int(gain > 1)") -> str:
    return LOOPS.replace("MADE", made).replace("MARK", mark).replace("SPLIT", split)


CASES = [
    REPEATED.replace("LABEL", LABEL).replace("SPLIT", ROWS),
    REPEATED.replace("LABEL", "(x[:, 0] > 0).astype(np.int64)").replace("SPLIT", ROWS),
    loops(ROWS),
    REPEATED.replace("LABEL", LABEL).replace("SPLIT", GROUPS),
    REPEATED.replace("LABEL", LABEL).replace("SPLIT", ORDERED),
    clean(REPEATED.replace("LABEL", "who % 2").replace("SPLIT", ROWS)),
    loops(GROUPS),
    clean(loops(ROWS, mark="k")),
    clean(loops(ROWS, made="rng.normal(size=8)")),
    clean(loops(ROWS, made="state")),
]


@pytest.mark.parametrize("text", CASES)
def test_groups(text: str) -> None:
    assert answered(divided_at_random, text) == marked(text)
