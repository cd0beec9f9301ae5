"""Shapes around sequences: collated samples, cells, hidden states, packing, tokens that are drawn."""

from __future__ import annotations

import pytest

from trainwreck.code.project import Project
from trainwreck.code.read import parse
from trainwreck.code.rehearsal import rehearsals
from trainwreck.core.program import Module, Program

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.tensor([1, 2, 0]), torch.tensor([4, 5])


def collate(rows):
    first, second = zip(*rows)
    return pad_sequence(first, batch_first=True), torch.tensor([len(r) for r in first]), pad_sequence(second)


emb = nn.Embedding(10, 8)
cell, pair, both = nn.GRUCell(8, 16), nn.LSTMCell(8, 16), nn.GRU(8, 16, bidirectional=True, batch_first=True)
opt = torch.optim.Adam(emb.parameters())
for ids, lengths, other in torch.utils.data.DataLoader(Rows(), 4, collate_fn=collate):
    x = emb(ids)
    VALUE = @@
    x.sum().backward()
    opt.step()
"""
SHAPES = {
    "ids.abs()": "(?, ?)",
    "lengths.abs()": "(?,)",
    "cell(x[:, 0]).abs()": "(?, 16)",
    "pair(x[:, 0])[1].abs()": "(?, 16)",
    "both(x)[1].abs()": "(2, ?, 16)",
    "both(pack_padded_sequence(x, lengths, batch_first=True))[1].abs()": "(2, ?, 16)",
    "pad_packed_sequence(both(pack_padded_sequence(x, lengths))[0])[0].abs()": "(?, ?, 32)",
    "torch.multinomial(x[:, 0].softmax(-1), 3).abs()": "(?, 3)",
    "torch.zeros(4, 5).repeat_interleave(3, 0).abs()": "(12, 5)",
    "torch.zeros(4, 5).topk(2, dim=0)[0].abs()": "(2, 5)",
    "(ids == 2).nonzero(as_tuple=True)[1].abs()": "(?,)",
    "torch.bmm(both(x)[0], cell(x[:, 0]).repeat(1, 2).unsqueeze(2)).squeeze(2).abs()": "(?, ?)",
}


@pytest.mark.parametrize("text", SHAPES)
def test_shape(text: str) -> None:
    module = parse("train.py", PROGRAM.replace("@@", text))
    assert isinstance(module, Module)
    found = [n for run in rehearsals(Project(Program({"train.py": module}))) for n in run.nodes if n.op == "abs"]
    assert found
    assert str(found[-1].shape) == SHAPES[text]


def test_what_was_written_into_stands_for_both() -> None:
    """``if some: out[rows] = x`` leaves one value, however often it may have happened."""
    text = """
import torch
net = torch.nn.Linear(4, 4)
opt = torch.optim.Adam(net.parameters())
for batch in torch.randn(8, 5, 4):
    out = torch.zeros(5, 4)
    for k in range(4):
        if torch.rand(()) < 0.5:
            out.index_add_(0, torch.arange(5), net(batch))
    out.view_as(batch).sum().backward()
    opt.step()
"""
    module = parse("train.py", text)
    assert isinstance(module, Module)
    (run,) = rehearsals(Project(Program({"train.py": module})))
    event = next(e for e in run.tape if e.name == "backward")
    assert len(event.state["reached"]) == 2
