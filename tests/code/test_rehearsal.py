"""The rehearsal sees one training step alike, however the program is written."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwreck.code.project import Project
from trainwreck.code.read import parse
from trainwreck.code.rehearsal import Rehearsing, rehearsals
from trainwreck.code.rehearsal.domain import Event, Node
from trainwreck.code.rehearsal.graph import ancestors, opaque
from trainwreck.core.program import Module, Program

PLAIN = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(50):
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        opt.step()
"""
TRAINER = """
import torch
from dataclasses import dataclass
from torch import nn
@dataclass
class Config:
    lr: float = 1e-3
    hidden: int = 8
class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inner = nn.Linear(4, cfg.hidden)
        self.head = nn.Linear(cfg.hidden, 3)
    def forward(self, x):
        return self.head(torch.relu(self.inner(x)))
class Trainer:
    def __init__(self, cfg, losses):
        self.cfg, self.net, self.losses = cfg, Net(cfg), losses
        self.optimizers = {"main": torch.optim.Adam(self.net.parameters(), lr=cfg.lr)}
    def _loss(self, batch):
        x, y = batch
        return sum(fn(self.net(x), y) for fn in self.losses)
    def fit(self, loader):
        for _ in range(50):
            for batch in loader:
                self._step(batch)
    def _step(self, batch):
        for opt in self.optimizers.values():
            opt.zero_grad()
        total = self._loss(batch)
        total.backward()
        for opt in self.optimizers.values():
            opt.step()
if __name__ == "__main__":
    Trainer(Config(), [nn.CrossEntropyLoss()]).fit(data())
"""
CLOSURES = """
import argparse
import functools
import torch
import torch.nn.functional as F
from torch import nn
def build(sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
def make_step(net, opt, loss):
    def step(x, y):
        opt.zero_grad()
        loss(net(x), y).backward()
        opt.step()
    return step
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    net = build([4, 8, 3])
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    step = make_step(net, opt, functools.partial(F.cross_entropy, label_smoothing=0.1))
    while True:
        if args.amp:
            raise NotImplementedError
        step(*next(batches))
main()
"""


def rehearsed(text: str) -> Rehearsing:
    module = parse("s.py", textwrap.dedent(text))
    assert isinstance(module, Module)
    return rehearsals(Project(Program({"s.py": module})))[0]


def named(run: Rehearsing, name: str) -> list[Event]:
    return [event for event in run.tape if event.name == name]


@pytest.mark.parametrize("text", [PLAIN, TRAINER, CLOSURES], ids=["plain", "trainer", "closures"])
def test_one_step_looks_the_same_in_every_spelling(text: str) -> None:
    run = rehearsed(text)
    order = [e.name for e in run.tape if e.name in ("zero_grad", "backward", "step")]
    assert order[:3] == ["zero_grad", "backward", "step"]
    backward = named(run, "backward")[0]
    assert len(backward.state["reached"]) == 4
    assert not opaque(backward.subject)
    optimizer = named(run, "step")[0].subject
    held, complete = run.optimized(optimizer)
    assert complete
    assert {id(p) for p in held} == {id(p) for p in backward.state["reached"]}
    assert run.groups(optimizer).items
    assert optimizer.get("lr") == 1e-3
    ops = [n.op for n in ancestors(backward.subject)]
    assert ops.index("cross_entropy") < ops.index("linear") < len(ops) - 1 - ops[::-1].index("relu") + 1


def test_no_grad_and_detach_cut_the_graph() -> None:
    run = rehearsed(
        """
        import torch
        from torch import nn
        a, b, c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
        @torch.no_grad()
        def features(x):
            return a(x)
        def middle(x):
            with torch.set_grad_enabled(False):
                return c(x)
        for x in data:
            (b(features(x)) + middle(x) + a(x).detach()).sum().backward()
        """
    )
    assert {p.name for p in named(run, "backward")[0].state["reached"]} == {"weight", "bias"}
    assert len(named(run, "backward")[0].state["reached"]) == 2


def test_classes_that_register_themselves_are_found() -> None:
    run = rehearsed(
        """
        import torch
        from torch import nn
        class Registry(dict):
            def named(self, name):
                def keep(cls):
                    self[name] = cls
                    return cls
                return keep
            def __call__(self, cls):
                self[cls.__name__.lower()] = cls
                return cls
        ACTS = Registry()
        @ACTS.named("r")
        class Relu:
            def __call__(self, x):
                return torch.relu(x)
        @ACTS
        class Tanh(nn.Module):
            def forward(self, x):
                return torch.tanh(x)
        class Act:
            known = {}
            def __init_subclass__(cls, tag, **options):
                super().__init_subclass__(**options)
                cls.known[tag] = cls
        class Sigmoid(Act, tag="s"):
            def __call__(self, x):
                return torch.sigmoid(x)
        net = nn.Linear(2, 2)
        acts = [ACTS[name]() for name in ("r", "tanh")] + [Act.known["s"]()]
        for x in data:
            h = net(x)
            for act in acts:
                h = act(h)
            h.sum().backward()
        """
    )
    ops = [n.op for n in ancestors(named(run, "backward")[0].subject)]
    assert ops[:5] == ["sum", "sigmoid", "tanh", "relu", "linear"]


def test_a_branch_with_a_known_test_takes_one_side_and_others_are_joined() -> None:
    run = rehearsed(
        """
        import torch
        from torch import nn
        MODE = "mse"
        net = nn.Linear(2, 1)
        for x, y in data:
            if MODE == "mse":
                loss = nn.functional.mse_loss(net(x), y)
            else:
                loss = nn.functional.l1_loss(net(x), y)
            if y.sum() > 3:
                loss = loss * 2
            loss.backward()
        """
    )
    loss = named(run, "backward")[0].subject
    assert isinstance(loss, Node)
    assert loss.op == "either"
    assert sorted(n.op for n in loss.inputs) == ["mse_loss", "mul"]
    assert "l1_loss" not in {n.op for n in run.nodes}


def test_what_a_turn_changes_is_unknown_in_a_later_one() -> None:
    run = rehearsed(
        """
        import torch
        net = torch.nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        step = 0
        for x in data:
            net(x).sum().backward()
            step += 1
            if step % 100 == 0:
                opt.step()
        """
    )
    assert [e.maybe for e in named(run, "step")] == [1]


def test_a_data_set_of_the_program_gives_the_batch() -> None:
    run = rehearsed(
        """
        import torch
        from torch.utils.data import Dataset, DataLoader
        class Rows(Dataset):
            def __init__(self):
                self.x = torch.randn(10, 3)
            def __len__(self):
                return 10
            def __getitem__(self, i):
                return {"x": self.x[i] / 255, "y": self.x[i].argmax()}
        net = torch.nn.Linear(3, 2)
        for batch in DataLoader(Rows(), batch_size=2, shuffle=True):
            torch.nn.functional.cross_entropy(net(batch["x"]), batch["y"]).backward()
        """
    )
    ops = [n.op for n in ancestors(named(run, "backward")[0].subject)]
    assert {"batch", "div", "argmax", "randn"} <= set(ops)
    batch = next(n for n in run.nodes if n.op == "batch")
    assert batch.owner is not None
    assert batch.owner.get("shuffle") is True


def test_parameters_that_are_frozen_are_not_reached() -> None:
    run = rehearsed(
        """
        import torch
        from torch import nn
        body, head = nn.Linear(2, 2), nn.Linear(2, 1)
        for p in body.parameters():
            p.requires_grad = False
        opt = torch.optim.SGD([{"params": [p for p in body.parameters() if p.requires_grad]},
                               {"params": head.parameters(), "lr": 0.1}], lr=0.01)
        for x in data:
            head(body(x)).sum().backward()
        """
    )
    assert len(named(run, "backward")[0].state["reached"]) == 2
    optimizer = next(o for o in run.objects if o.kind == "torch.optim.SGD")
    assert [len(g.entries["params"].items) for g in run.groups(optimizer).items] == [0, 2]


WORDS = st.sampled_from(
    """x y self net loss for while if else in def class return yield with lambda ( ) [ ] { } : , = += . * ** @ 1 0
    None True torch.no_grad() loss.backward() opt.step() net(x) super() import torch from try except finally
    global break continue del assert raise match case _ f'{x}' not and or is await async""".split()
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.lists(WORDS, min_size=1, max_size=7)), min_size=1, max_size=14))
def test_no_program_breaks_it(lines: list[tuple[int, list[str]]]) -> None:
    text = "import torch\n" + "\n".join("    " * depth + " ".join(words) for depth, words in lines)
    module = parse("s.py", text + "\nloss.backward()\n")
    if isinstance(module, Module):
        rehearsals(Project(Program({"s.py": module})))


@pytest.mark.parametrize(
    "text",
    [
        "def f(): return f()\nf()\nloss.backward()",
        "class A:\n    def __getattr__(self, n): return getattr(self, n)\nA().x\nloss.backward()",
        "class A(A): pass\nA().x\nloss.backward()",
        "x = []\nx.append(x)\nfor i in x:\n    x += x\nloss = sum(x)\nloss.backward()",
        "d = {}\nd['d'] = d\nf(**d)\nloss.backward()",
        "import s\nfrom s import *\ns.loss.backward()",
        "x = 2\nwhile True:\n    x = x ** x\nloss.backward()",
        "x = 'a' * 10**9\nloss.backward()",
        "x = [0] * 10**9\nx = tuple(x) * 10**9\nloss.backward()",
        "import copy\na = []\na.append(a)\nb = copy.deepcopy(a)\nloss.backward()",
        "for a in range(10**9):\n"
        + "".join(f"{' ' * (n + 1)}for x{n} in y:\n" for n in range(15))
        + " " * 17
        + "loss.backward()",
    ],
)
def test_loops_and_knots_end(text: str) -> None:
    module = parse("s.py", text)
    assert isinstance(module, Module)
    run = rehearsals(Project(Program({"s.py": module})))
    assert all(r.steps <= 70_000 for r in run)


def test_ranges_that_are_longer_than_any_list() -> None:
    run = rehearsed("""
        import torch
        net = torch.nn.Linear(2, 1)
        x = torch.zeros(10 ** 25, 2)[: 10 ** 24]
        for step in range(10 ** 30):
            net(x).sum().backward()
    """)
    assert len(named(run, "backward")) == 2
