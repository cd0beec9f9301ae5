"""What loss functions and custom functions are given, and statistics that do not follow: found, silent where right."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import lines, run

from trainwreck.engine import diagnose

pytest.importorskip("torch", reason="torch is not installed")

DISTILLED = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
teacher, student = nn.Linear(6, 5), nn.Linear(6, 5)
opt = torch.optim.Adam(student.parameters(), 1e-2)
for _ in range(60):
    seen = torch.randn(32, 6)
    with torch.no_grad():
        aim = F.softmax(teacher(seen), 1)
    own = student(seen)
    loss = DISTANCE
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KL = "live-kl-of-no-logarithm"


@pytest.mark.parametrize(
    ("distance", "wrong"),
    [
        ("F.kl_div(F.softmax(own, 1), aim, reduction='batchmean')", True),
        ("F.kl_div(own, aim, reduction='sum') / 32", True),
        ("F.kl_div(aim, F.softmax(own, 1), reduction='batchmean')", True),
        ("F.kl_div(F.log_softmax(own, 1), aim, reduction='batchmean')", False),
        ("F.kl_div(F.softmax(own, 1).clamp_min(1e-8).log(), aim, reduction='batchmean')", False),
        ("F.kl_div(aim.log(), F.softmax(own, 1), reduction='batchmean')", False),
        ("F.kl_div(F.log_softmax(own, 1), aim.log(), reduction='batchmean', log_target=True)", False),
        ("(aim - F.softmax(own, 1)).pow(2).sum(1).mean()", False),
        ("(2.0 - aim * F.softmax(own, 1)).sum(1).mean()", False),
    ],
)
def test_a_divergence_wants_a_logarithm_first(tmp_path: Path, distance: str, wrong: bool) -> None:
    run(tmp_path, DISTILLED.replace("DISTANCE", distance))
    assert (KL in lines(tmp_path)) is wrong
    if wrong:
        told = diagnose([tmp_path / "rec"], code=[]).root_causes
        assert told[0].id == "kldiv-input-not-log"


SPOKEN = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 6)
opt = torch.optim.Adam(model.parameters(), 1e-2)
loss_of = nn.CTCLoss(zero_infinity=True)
for step in range(40):
    frames = torch.full((16,), 10)
    letters = torch.full((16,), 3)
    letters[:LONG] = 12
    scores = model(torch.randn(10, 16, 4)).log_softmax(2)
    loss = loss_of(scores, torch.randint(1, 6, (16, 12)), frames, letters)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(("long", "told"), [(8, True), (0, False)])
def test_texts_without_a_path_are_counted(tmp_path: Path, long: int, told: bool) -> None:
    run(tmp_path, SPOKEN.replace("LONG", str(long)))
    assert ("live-ctc-text-too-long" in lines(tmp_path)) is told


NORMED = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=MOMENTUM), nn.ReLU(), nn.Linear(8, 1))
average = copy.deepcopy(model).requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), 1e-2)
for step in range(160):
    model.train()
    seen = 5.0 + 3.0 * torch.randn(64, 4)
    loss = (model(seen) - seen.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, 0.1)
        BUFFERS
    if step % 40 == 39:
        model.eval()
        model(seen)
"""
FOLLOW = "[a.copy_(b) for a, b in zip(average.buffers(), model.buffers())]"


@pytest.mark.parametrize(
    ("momentum", "buffers", "sign"),
    [
        ("0.0005", FOLLOW, "live-running-statistics-off"),
        ("0.1", "pass", "live-average-without-statistics"),
        ("0.1", FOLLOW, None),
        ("0.02", FOLLOW, None),
        ("None", FOLLOW, None),
    ],
)
def test_statistics_that_do_not_follow(tmp_path: Path, momentum: str, buffers: str, sign: str | None) -> None:
    run(tmp_path, NORMED.replace("MOMENTUM", momentum).replace("BUFFERS", buffers))
    told = lines(tmp_path)
    for name in ("live-running-statistics-off", "live-average-without-statistics"):
        assert (name in told) is (name == sign)


CUSTOM = """
import torch
from torch import nn
torch.manual_seed(0)

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = FORWARD
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return BACKWARD

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.last(Own.apply(self.first(x)))

net = Net()
opt = torch.optim.SGD(net.parameters(), 1e-2)
for _ in range(30):
    seen = 2.0 * torch.randn(32, 6)
    loss = (net(seen) - seen[:, :1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss), Own.__dict__["forward"].__class__.__name__)
"""


@pytest.mark.parametrize(
    ("forward", "backward", "wrong"),
    [
        ("x * torch.sigmoid(x)", "grad * torch.sigmoid(x)", True),
        ("torch.tanh(x)", "grad * (1 - x * x)", True),
        ("x.flip(1) * 2.0", "grad * 2.0", True),
        ("x * torch.sigmoid(x)", "grad * (torch.sigmoid(x) + y * (1 - torch.sigmoid(x)))", False),
        ("x.flip(1) * 2.0", "grad.flip(1) * 2.0", False),
        ("x.round()", "grad", False),
        ("(x > 0).float()", "grad / (1 + x.abs()) ** 2", False),
        ("x.clone()", "-0.3 * grad", False),
        ("x.clamp(-1, 1)", "grad", False),
        ("x.clamp_min(0) * 1.5", "grad * (x > -0.5)", False),
        ("torch.tanh(x + torch.rand_like(x))", "grad", False),
    ],
)
def test_a_backward_is_measured_against_its_forward(tmp_path: Path, forward: str, backward: str, wrong: bool) -> None:
    printed = run(tmp_path, CUSTOM.replace("FORWARD", forward).replace("BACKWARD", backward))
    assert "staticmethod" in printed  # the program has its function back
    told = lines(tmp_path)
    assert ("live-backward-no-derivative" in told) is wrong
    if wrong:
        assert '"module": "Net.Own"' in told


PAIRS = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(8, 8)
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(200):
    seen = torch.randn(32, 8)
    a, b = (F.normalize(net(seen + 0.1 * torch.randn(32, 8)), dim=1) for _ in range(2))
    loss = F.cross_entropy(a @ b.t() SCALED, torch.arange(32))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(("scaled", "told"), [("* 0.1", True), ("/ 0.1", False)])
def test_pairs_that_a_temperature_keeps_together(tmp_path: Path, scaled: str, told: bool) -> None:
    run(tmp_path, PAIRS.replace("SCALED", scaled))
    signs = {e.sign for c in diagnose([tmp_path / "rec"], code=[]).root_causes for e in c.evidence}
    assert ("live-pairs-confined" in signs) is told


TASKS = """
import torch
from torch import nn
torch.manual_seed(0)
start = nn.Linear(4, 1)
opt = torch.optim.Adam(start.parameters(), 1e-2)
for _ in range(20):
    opt.zero_grad()
    for _ in range(4):
        seen = torch.randn(16, 4)
        fast = [p.detach().requires_grad_() for p in start.parameters()]
        loss = (seen @ fast[0].t() + fast[1] - seen[:, :1]).pow(2).mean()
        loss.backward()
    opt.step()
"""


def test_gradients_that_never_came_are_not_thrown_away(tmp_path: Path) -> None:
    run(tmp_path, TASKS)
    assert "live-gradients-discarded" not in lines(tmp_path)
