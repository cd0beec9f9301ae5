"""Low-rank updates that are too strong or counted twice, in several spellings. ``# here`` marks the line to be told;
without one all is well."""

from __future__ import annotations

import pytest

from marked import marked, told

LAYER = """
import copy
import torch, torch.nn as nn, torch.nn.functional as F
class Thin(nn.Module):
    def __init__(self, lin, r=4, alpha=8.0):
        super().__init__()
        self.lin, self.r, self.alpha, self.merged = lin, r, alpha, False
        self.A = nn.Linear(lin.in_features, r, bias=False)
        self.B = nn.Linear(r, lin.out_features, bias=False)
        nn.init.zeros_(self.B.weight)
        self.s = alpha / r
        lin.requires_grad_(False)
    def delta(self):
        return self.B.weight @ self.A.weight * self.s
    def forward(self, x):
        FORWARD
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.v, self.o = Thin(nn.Linear(16, 16)), Thin(nn.Linear(16, 16)), nn.Linear(16, 4)
    def forward(self, x): return self.o(torch.tanh(self.q(x)) * self.v(x))
def train(net, opt, n=100):
    for s in range(n):
        x = torch.randn(32, 16)
        loss = F.cross_entropy(net(x), x[:, :4].argmax(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
@torch.no_grad()
def test(net):
    net.eval()
    x = torch.randn(100, 16)
    print((net(x).argmax(-1) == x[:, :4].argmax(-1)).float().mean())
MERGE
net = Net()
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 1e-2)
"""
ON = "return self.lin(x) + self.s * self.B(self.A(x))"
ASKS = "return self.lin(x) + (0 if self.merged else self.s * self.B(self.A(x)))"
INTO = (
    "@torch.no_grad()\ndef merge(net):\n    for n, m in list(net.named_children()):\n        if isinstance(m, Thin):\n"
)
PLUS = INTO + "            m.lin.weight += m.delta()\n"
TOLD = INTO + "            m.lin.weight += m.delta()  # here\n"
USE = "train(net, opt)\nmerge(net)\ntest(net)\n"


ROUNDS = "for e in range(3):\n    train(net, opt)\n    merge(net)\n    test(net)\n"
SPLIT = "train(net, opt)\nmerge(net)\ntorch.save(net.state_dict(), 'x')\nsplit(net)\ntest(net)\n"
FIT = "train(net, opt)\n"
RATIO = "self.s = alpha / r"


def script(forward: str, merge: str, after: str, scale: str = RATIO) -> str:
    return LAYER.replace("FORWARD", forward).replace("MERGE", merge).replace(RATIO, scale) + after


MERGES = {
    "added": script(ON, TOLD, USE),
    "data": script(ON, INTO + "            m.lin.weight.data = m.lin.weight.data + m.delta().detach()  # here\n", USE),
    "copy": script(ON, TOLD.replace("(net):\n", "(net):\n    net = copy.deepcopy(net)\n") + "    return net",
                   "train(net, opt)\ntest(merge(net))\n"),
    "flag is not asked": script(ON + "  # here", PLUS + "            m.merged = True\n", USE),
    "flag is not set": script(ASKS, TOLD, USE),
    "second merge": script(ASKS, PLUS + "            m.merged = True\n", USE + "merge(net)  # here\n"),
    "state": script(ON, """
def merge(net):
    held = net.state_dict()
    for n in ("q", "v"):
        held[n + ".lin.weight"] += getattr(net, n).s * held[n + ".B.weight"] @ held[n + ".A.weight"]  # here
    net.load_state_dict(held)
""", USE),
    "flag": script(ASKS, PLUS + "            m.merged = True\n", USE),
    "base put back": script(ON, PLUS + "            setattr(net, n, m.lin)\n", USE),
    "new layer": script(ON, INTO + """            new = nn.Linear(16, 16)
            new.weight.copy_(m.lin.weight + m.delta())
            setattr(net, n, new)
""", USE),
    "matrix emptied": script(ON, PLUS + "            m.B.weight.zero_()\n", ROUNDS),
    "scale emptied": script(ON, PLUS + "            m.s = 0\n", USE),
    "taken off again": script(ON, PLUS + PLUS.replace("merge", "split").replace("+=", "-="), SPLIT),
}  # fmt: skip
TIMES = "self.s = alpha * r  # here"
SCALES = {
    "attribute": script(ON, "", FIT, TIMES),
    "two products": script("return self.lin(x) + self.B(self.A(x)) * self.alpha * self.r  # here", "", FIT),
    "local": script("f = self.alpha * self.r  # here\n        return self.lin(x) + f * self.B(self.A(x))",
                    "", FIT),
    "between": script("return self.lin(x) + self.B(self.s * self.A(x))", "", FIT, TIMES),
    "weights": script("return F.linear(x, self.lin.weight + self.delta(), self.lin.bias)", "", FIT, TIMES),
    "given": script(ON, "", FIT)
    .replace("16)), nn.Linear(16, 4)\n", "16), alpha=512), nn.Linear(16, 4)  # here\n"),
    "ratio": script(ON, "", FIT),
    "root": script(ON, "", FIT).replace("alpha / r", "alpha / r ** 0.5"),
}  # fmt: skip
CASES = [("code-adapter-merged-twice", n, t) for n, t in MERGES.items()]
CASES += [("code-lora-scale-excessive", n, t) for n, t in SCALES.items()]


@pytest.mark.parametrize(("sign", "name", "text"), CASES, ids=[n for _, n, _ in CASES])
def test_told_where_it_is_marked(sign: str, name: str, text: str) -> None:
    assert told(sign, text) == marked(text)
