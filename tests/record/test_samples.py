"""Do samples stay apart in a model: layers and views that mix them, and programs that do so on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch  # noqa: TID251
from recorded import lines, run
from torch import nn  # noqa: TID251
from torch.nn import functional  # noqa: TID251

from trainwreck.record.inside import mixing, reshapes


class Made(nn.Module):
    """A model with a few layers, and ``way`` as its forward."""

    def __init__(self, way: Any) -> None:
        super().__init__()
        self.way = way
        self.linear = nn.Linear(8, 6)
        self.attention = nn.MultiheadAttention(6, 2)
        self.tokens = nn.Embedding(20, 8)
        self.late, self.early = nn.GRU(8, 8), nn.GRU(8, 8, batch_first=True)
        self.last = nn.Linear(8, 6)

    def forward(self, x: Any) -> Any:
        return self.way(self, x)


def attended(m: Made, h: Any) -> Any:
    return m.attention(h, h, h)[0].mean(0)


def swapped(m: Made, x: Any) -> Any:
    return attended(m, m.linear(x).view(x.shape[1], x.shape[0], 6))


def permuted(m: Made, x: Any) -> Any:
    return attended(m, m.linear(x).permute(1, 0, 2))


def over_samples(m: Made, x: Any) -> Any:
    return (functional.softmax(m.linear(x), 0) * x[..., :6]).mean(1)


def over_features(m: Made, x: Any) -> Any:
    return (functional.softmax(m.linear(x), -1) * x[..., :6]).mean(1)


def ranked(m: Made, x: Any) -> Any:
    """The scores of one query's documents."""
    return m.linear(x).sum((1, 2)).log_softmax(0)


def time_for_batch(m: Made, x: Any) -> Any:
    return m.last(m.late(m.tokens(x))[0][:, -1])


def batch_first(m: Made, x: Any) -> Any:
    return m.last(m.early(m.tokens(x))[0][:, -1])


def time_first(m: Made, x: Any) -> Any:
    return m.last(m.late(m.tokens(x))[0])


def graph(m: Made, x: Any) -> Any:
    return torch.softmax(x.flatten(1) @ x.flatten(1).T, -1) @ m.linear(x[:, 0])


def recurrent_policy(m: Made, x: Any) -> Any:
    return m.last(m.late(x[:, 0].view(4, 4, 8))[0]).view(16, 6)


def heads_by_view(m: Made, x: Any) -> Any:
    h = m.linear(x).view(x.shape[0], 2, x.shape[1], 3)
    return functional.scaled_dot_product_attention(h, h, h).mean((1, 2))


def heads(m: Made, x: Any) -> Any:
    h = m.linear(x).view(*x.shape[:2], 2, 3).transpose(1, 2)
    return functional.scaled_dot_product_attention(h, h, h).transpose(1, 2).reshape(*x.shape[:2], 6).mean(1)


def dropped(m: Made, x: Any) -> Any:
    return functional.dropout(m.linear(x), 0.2)


def dropped_in_training(m: Made, x: Any) -> Any:
    return functional.dropout(m.linear(x), 0.2, m.training)


FLOATS, TOKENS = (16, 5, 8), (16, 7)


@pytest.mark.parametrize(
    ("way", "size", "kinds"),
    [
        (swapped, FLOATS, {"reshape", "reshape-moves"}),
        (over_samples, FLOATS, {"softmax"}),
        (time_for_batch, TOKENS, {"recurrence"}),
        (heads_by_view, FLOATS, {"reshape-moves"}),
        (dropped, FLOATS, {"dropout"}),
        (permuted, FLOATS, set()),
        (ranked, FLOATS, set()),
        (over_features, FLOATS, set()),
        (batch_first, TOKENS, set()),
        (time_first, TOKENS, set()),
        (graph, FLOATS, set()),
        (recurrent_policy, FLOATS, set()),
        (heads, FLOATS, set()),
        (dropped_in_training, FLOATS, set()),
    ],
)
def test_what_mixes_samples(way: Any, size: tuple[int, ...], kinds: set[str]) -> None:
    torch.manual_seed(0)
    model = Made(way)
    given = torch.randn(size) if len(size) == 3 else torch.randint(0, 20, size)
    fixed = {p.untyped_storage()._cdata for p in model.parameters()}
    assert {f["kind"] for f in mixing.look(model, (given,), {}, fixed)} == kinds


@pytest.mark.parametrize(("position", "causal"), [(False, False), (True, False), (False, True), (True, True)])
def test_positions_of_tokens(position: bool, causal: bool) -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(20, 8)
            self.places = nn.Parameter(torch.randn(7, 8))
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, x: Any) -> Any:
            h = self.tokens(x) + (self.places if position else 0)
            return self.layer(h, nn.Transformer.generate_square_subsequent_mask(7) if causal else None)

    torch.manual_seed(0)
    model = Words()
    fixed = {p.untyped_storage()._cdata for p in model.parameters()}
    found = {f["kind"] for f in mixing.look(model, (torch.randint(0, 20, (16, 7)),), {}, fixed)}
    assert ("later-tokens" in found, "positions-exchangeable" in found) == (not causal, not position)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((48, 16), (6, 16, 8)),
        ((8, 3, 8, 8), (8, 64, 3)),
        ((8, 64, 24), (8, 24, 8, 8)),
        ((6, 16, 4, 2), (48, 16)),
        ((16, 5, 6), (5, 16, 6)),
        ((8, 3, 64), (8, 64, 3)),
        ((16, 5, 8), (16, 2, 5, 4)),
        ((16, 2, 5, 4), (16, 5, 8)),
    ],
)
def test_reshapes_that_should_have_been_permutations(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    assert reshapes.moves(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((16, 5, 6), (80, 6)),
        ((80, 6), (16, 5, 6)),
        ((16, 32, 8), (16, 8, 32)),
        ((8, 12, 8), (8, 3, 32)),
        ((8, 6, 4, 4), (8, 2, 3, 4, 4)),
        ((8, 8, 8, 3), (8, 2, 4, 2, 4, 3)),
        ((8, 3, 8, 8), (8, 3, 64)),
        ((16, 1, 5), (16, 5, 1)),
        ((0, 5), (5, 0)),
    ],
)
def test_reshapes_that_merge_or_split(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    assert not reshapes.moves(before, after)


PROGRAM = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.att, self.out = nn.Linear(6, 8), nn.MultiheadAttention(8, 2), nn.Linear(8, 3)
    def forward(self, x):
        h = self.inp(x)
        h = h.WAY
        return self.out(self.att(h, h, h)[0].mean(0))
x = torch.randn(60, 9, 6)
y = (x.sum((1, 2)) > 0).long()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(12):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x[step * 5 : step * 5 + 5]), y[step * 5 : step * 5 + 5])
    loss.backward()
    optimizer.step()
print(float(loss), float(net.out.weight.sum()), torch.rand(1).item())
"""


def test_a_run_tells_the_line(tmp_path: Path) -> None:
    wrong = PROGRAM.replace("WAY", "reshape(x.shape[1], x.shape[0], 8)")
    run(tmp_path, wrong)
    found = [e for e in map(json.loads, lines(tmp_path).splitlines()) if "mixed-by-reshape" in e.get("event", "")]
    assert [(e["line"], e["module"]) for e in found] == [(10, "Net")]


def test_a_run_that_permutes_says_nothing_and_is_the_same(tmp_path: Path) -> None:
    right = PROGRAM.replace("WAY", "transpose(0, 1)")
    plain = tmp_path / "plain"
    plain.mkdir()
    printed = run(tmp_path, right)
    assert "mixed-by" not in lines(tmp_path)
    assert printed == run(plain, right.replace("net = Net()", "import os, signal\nnet = Net()"))
