"""Wiring signs: found where they are, silent where an optimizer begins later (a second phase, a resume)."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import lines, run

from trainwreck.engine import diagnose

pytest.importorskip("torch", reason="torch is not installed")

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 4), torch.randint(0, 3, (64,))

def train(model, clear):
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(30):
        loss = nn.functional.cross_entropy(model(x), y)
        if clear:
            opt.zero_grad()
        loss.backward()
        opt.step()
"""


def events(folder: Path, text: str) -> str:
    run(folder, PROGRAM + text)
    return lines(folder)


def test_a_second_phase_that_clears_its_gradients_is_not_accused(tmp_path: Path) -> None:
    assert "live-" not in events(tmp_path, "for _ in range(3):\n    train(nn.Linear(4, 3), clear=True)\n")


def test_gradients_that_are_never_cleared_are_found_by_step_five(tmp_path: Path) -> None:
    told = events(tmp_path, "train(nn.Linear(4, 3), clear=False)\n")
    line = next(line for line in told.splitlines() if "live-gradients-never-zeroed" in line)
    assert '"step": 5' in line


def test_a_generator_that_steps_less_often_than_its_critic_is_not_accused(tmp_path: Path) -> None:
    text = """
generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
g, c = torch.optim.Adam(generator.parameters(), lr=1e-3), torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(60):
    for _ in range(5):
        loss = critic(generator(torch.randn(16, 2)).detach()).mean() - critic(x[:16]).mean()
        c.zero_grad(); loss.backward(); c.step()
    loss = -critic(generator(torch.randn(16, 2))).mean()
    g.zero_grad(); loss.backward(); g.step()
"""
    assert "never-zeroed" not in events(tmp_path, text)


FINE_TUNING = """
body, head = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1)), nn.Linear(8, 3)
model = nn.Sequential(body, head)
for p in body.parameters():
    p.requires_grad_({trained})
opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
body.eval()
for step in range(30):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
"""


@pytest.mark.parametrize("trained", [True, False])
def test_a_frozen_body_in_evaluation_mode_is_a_choice(tmp_path: Path, trained: bool) -> None:
    told = events(tmp_path, FINE_TUNING.format(trained=trained))
    assert ("live-eval-mode-in-training" in told) == trained


LOW_RANK = """
from torch.nn.utils import parametrize
class Delta(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(2, 4) / 4), nn.Parameter(torch.zeros(8, 2))
    def forward(self, w):
        return w + self.b @ self.a
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 3))
model.eval().requires_grad_(False)
parametrize.register_parametrization(model[0], "weight", Delta())
opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(30):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
"""


SURGERY = """
body, heads = nn.Linear(4, 8), [nn.Linear(8, 3), nn.Linear(8, 3)]
opt = torch.optim.SGD([*body.parameters(), *heads[0].parameters(), *heads[1].parameters()], lr=0.05)
for step in range(40):
    opt.zero_grad()
    grads = []
    {forward}
    for head in heads:
        {each}
        for p in body.parameters():
            p.grad = None
        loss.backward(retain_graph=True)
        grads.append([p.grad.clone() for p in body.parameters()])
    for p, a, b in zip(body.parameters(), *grads):
        p.grad = a + b
    opt.step()
"""


def test_losses_of_one_forward_are_no_batches_that_add_up(tmp_path: Path) -> None:
    """Gradient surgery (arXiv:2001.06782): each loss goes backward by itself, and the trunk's gradients are mixed."""
    each = "loss = next(losses)"
    forward = "h = body(x); losses = iter([nn.functional.cross_entropy(head(h), y) for head in heads])"
    events(tmp_path, SURGERY.format(forward=forward, each=each))
    found = diagnose([tmp_path / "rec"])
    signs = {e.sign for cause in found.root_causes for e in cause.evidence}
    assert not {s for s in signs if "accumul" in s or "discard" in s}, signs
    assert '"micro_batches"' not in lines(tmp_path) or '"micro_batches": 2' not in lines(tmp_path)


def test_a_frozen_body_under_a_parametrisation_stays_in_evaluation_mode(tmp_path: Path) -> None:
    assert "live-eval-mode-in-training" not in events(tmp_path, LOW_RANK)


def test_the_first_class_of_a_contrastive_loss_is_no_sorted_data(tmp_path: Path) -> None:
    text = """
net = nn.Linear(4, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(60):
    a, b = net(x + 0.1 * torch.randn_like(x)), net(x + 0.1 * torch.randn_like(x)).detach()
    scores = torch.cat([(a * b).sum(1, keepdim=True), a @ torch.randn(8, 32)], 1)
    loss = nn.functional.cross_entropy(scores, torch.zeros(64, dtype=torch.long))
    opt.zero_grad(); loss.backward(); opt.step()
"""
    events(tmp_path, text)
    signs = {e.sign for cause in diagnose([tmp_path / "rec"]).root_causes for e in cause.evidence}
    assert "live-batches-of-one-class" not in signs


TEACHER = """
net = lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 3))
student, teacher = net(), net().requires_grad_(False)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(30):
    soft = teacher(x).softmax(1)
    loss = nn.functional.cross_entropy(student(x), y) + (student(x).softmax(1) - soft).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if {follows}:
        for a, b in zip(teacher.parameters(), student.parameters()):
            a.lerp_(b.detach(), 0.05)
"""


@pytest.mark.parametrize("follows", [True, False])
def test_noise_in_a_mean_teacher_belongs_to_the_method(tmp_path: Path, follows: bool) -> None:
    told = events(tmp_path, TEACHER.format(follows=follows))
    assert ("live-teacher-in-training-mode" in told) != follows


OTHER_HEAD = """
class Net(nn.Module):
    def __init__(self, name, size):
        super().__init__()
        self.body = nn.Linear(4, 8)
        setattr(self, name, nn.Linear(8, size))
        self.name = name

    def forward(self, x):
        return getattr(self, self.name)(self.body(x))

first, second = Net("lm_head", 5), Net("tag_head", 3)
report = second.load_state_dict(first.state_dict(), strict=False)
assert len(report.missing_keys) == 2
train(second, clear=True)
"""


def test_a_head_that_takes_the_place_of_another_is_no_part_by_another_name(tmp_path: Path) -> None:
    assert "live-" not in events(tmp_path, OTHER_HEAD)


ADAPTED = """
class Adapted(nn.Linear):
    def __init__(self, wide, out):
        super().__init__(wide, out)
        self.lora_a, self.lora_b = nn.Parameter(torch.randn(2, wide) / 2), nn.Parameter(torch.zeros(out, 2))
    def forward(self, x):
        return super().forward(x) + x @ self.lora_a.T @ self.lora_b.T

model = nn.Sequential(Adapted(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
adapters = [p for n, p in model.named_parameters() if "lora" in n]
rest = [p for n, p in model.named_parameters() if "lora" not in n]

def fit(trained):
    for p in model.parameters():
        p.requires_grad_(any(p is t for t in trained))
    opt = torch.optim.Adam(trained, lr=1e-2)
    for step in range(12):
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
"""


def test_adapters_that_get_their_turn_later_are_not_accused(tmp_path: Path) -> None:
    assert "live-adapters-frozen" not in events(tmp_path, ADAPTED + "fit(rest)\nfit(adapters)\n")


def test_adapters_that_stay_frozen_beside_a_new_head_are_found(tmp_path: Path) -> None:
    assert "live-adapters-frozen" in events(tmp_path, ADAPTED + "fit(rest[-2:])\n")
