"""Train small models in ways that fail, and write what they log: the cases of the modes that curves decide.

    OMP_NUM_THREADS=1 .venv/bin/python tools/make_curve_cases.py OUT [NAME...]

Each function is one case: it really trains, logs what a script would log, and returns rows. Needs torch.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch  # noqa: TID251
from torch import nn  # noqa: TID251
from torch.nn import functional as F  # noqa: TID251

Row = dict[str, float]
CASES: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {}


def case(cause: str) -> Callable[[Callable[[], Iterator[Row]]], Callable[[], Iterator[Row]]]:
    """Register a case under the name of its function."""

    def keep(function: Callable[[], Iterator[Row]]) -> Callable[[], Iterator[Row]]:
        CASES[function.__name__.replace("_", "-")] = (cause, function)
        return function

    return keep


def blobs(count: int, classes: int = 4, width: int = 16, spread: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    centres = torch.randn(classes, width) * 2
    labels = torch.randint(classes, (count,))
    return centres[labels] + spread * torch.randn(count, width), labels


def mlp(width: int, out: int, hidden: int = 64) -> nn.Module:
    return nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out)
    )


def norm(model: nn.Module) -> float:
    return float(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm())


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Callable[[int], tuple[torch.Tensor, torch.Tensor]],
    loss_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    steps: int,
    every: int = 5,
    rate: Callable[[int], float] | None = None,
    clip: float | None = None,
) -> Iterator[Row]:
    for step in range(steps):
        if rate is not None:
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
        x, y = batch(step)
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        size = norm(model)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        lr = optimizer.param_groups[0]["lr"]
        optimizer.step()
        if step % every == 0:
            yield {"step": step, "loss": loss.item(), "grad_norm": size, "learning_rate": lr}


def sampler(x: torch.Tensor, y: torch.Tensor, size: int = 64) -> Callable[[int], tuple[torch.Tensor, torch.Tensor]]:
    def batch(_: int) -> tuple[torch.Tensor, torch.Tensor]:
        pick = torch.randint(len(x), (size,))
        return x[pick], y[pick]

    return batch


@case("lr-too-low")
def lr_too_low() -> Iterator[Row]:
    x, y = blobs(2000)
    model = mlp(16, 4)
    yield from train(model, torch.optim.SGD(model.parameters(), lr=2e-4), lambda _: (x, y), F.cross_entropy, 400)


@case("gradient-clip-too-small")
def gradient_clip_too_small() -> Iterator[Row]:
    x, y = blobs(2000)
    model = mlp(16, 4)
    yield from train(
        model, torch.optim.SGD(model.parameters(), lr=0.05), sampler(x, y, 256), F.cross_entropy, 400, clip=0.01
    )


@case("warmup-lr-zero")
def warmup_lr_zero() -> Iterator[Row]:
    x, y = blobs(2000)
    model = mlp(16, 4)
    yield from train(
        model,
        torch.optim.AdamW(model.parameters()),
        sampler(x, y),
        F.cross_entropy,
        300,
        rate=lambda s: 3e-3 * min(1, s // 120),
    )


@case("scheduler-wrong-granularity")
def scheduler_wrong_granularity() -> Iterator[Row]:
    x, y = blobs(2000, spread=3.0)
    model = mlp(16, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    batch = sampler(x, y)
    for epoch in range(12):
        total = 0.0
        for step in range(30):
            features, labels = batch(step)
            loss = F.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()  # meant for the end of the epoch
            total += float(loss) / 30
        yield {"epoch": epoch, "train_loss": total, "lr": optimizer.param_groups[0]["lr"]}


@case("lr-schedule-horizon")
def lr_schedule_horizon() -> Iterator[Row]:
    x, y = blobs(2000, spread=3.0)
    model = mlp(16, 4)
    yield from train(
        model,
        torch.optim.AdamW(model.parameters()),
        sampler(x, y),
        F.cross_entropy,
        600,
        every=10,
        rate=lambda s: 2e-3 * max(0.0, 1 - s / 250),
    )


@case("scheduler-never-stepped")
def scheduler_never_stepped() -> Iterator[Row]:
    x, y = blobs(2000)
    model = mlp(16, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, s / 100))  # built, never stepped
    yield from train(model, optimizer, sampler(x, y), F.cross_entropy, 200)


@case("overfitting")
def overfitting() -> Iterator[Row]:
    x, y = blobs(80, spread=4.0)
    vx, vy = x[40:], y[40:]
    model = mlp(16, 4, 256)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(60):
        loss = F.cross_entropy(model(x[:40]), y[:40])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            out = model(vx)
        yield {
            "epoch": epoch,
            "loss": float(loss),
            "val_loss": float(F.cross_entropy(out, vy)),
            "val_accuracy": float((out.argmax(1) == vy).float().mean()),
        }


@case("class-imbalance")
def class_imbalance() -> Iterator[Row]:
    x = torch.randn(2000, 16)
    y = (x[:, 0] + 2 * torch.randn(2000) > 4.2).long()
    model = mlp(16, 2, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for epoch in range(15):
        total = 0.0
        for k in range(0, 1600, 64):
            loss = F.cross_entropy(model(x[k : k + 64]), y[k : k + 64])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss) / 25
        with torch.no_grad():
            out = model(x[1600:])
        yield {
            "epoch": epoch,
            "loss": total,
            "val_loss": float(F.cross_entropy(out, y[1600:])),
            "val_accuracy": float((out.argmax(1) == y[1600:]).float().mean()),
        }


@case("inputs-not-normalised")
def inputs_not_normalised() -> Iterator[Row]:
    x = torch.randn(1000, 8) * torch.tensor([1.0, 10, 1e5, 3e6, 1, 1, 1e4, 1])
    y = (x[:, 0] + 0.1 * x[:, 1]).unsqueeze(1)
    model = mlp(8, 1)
    yield from train(model, torch.optim.Adam(model.parameters(), lr=1e-4), sampler(x, y), F.mse_loss, 200)


@case("target-not-normalised")
def target_not_normalised() -> Iterator[Row]:
    x = torch.randn(1000, 8)
    y = 250_000 + 80_000 * x[:, :1]
    model = mlp(8, 1)
    for row in train(model, torch.optim.Adam(model.parameters(), lr=1e-3), sampler(x, y), F.mse_loss, 300, every=10):
        with torch.no_grad():
            yield {**row, "val_rmse": float(F.mse_loss(model(x), y).sqrt())}


def bandit(steps: int, lr: float, bonus: float, prompts: int = 8, arms: int = 12, group: int = 8) -> Iterator[Row]:
    """Group-relative policy gradient on a table of prompts and answers."""
    best = torch.randint(arms, (prompts,))
    logits = nn.Parameter(0.01 * torch.randn(prompts, arms))
    start = logits.detach().clone().log_softmax(-1)
    optimizer = torch.optim.Adam([logits], lr=lr)
    for step in range(steps):
        policy = torch.distributions.Categorical(logits=logits)
        actions = policy.sample((group,))
        rewards = (actions == best).float() + 0.3 * ((actions - best).abs() == 1).float()
        advantage = (rewards - rewards.mean(0)) / (rewards.std(0) + 1e-4)
        loss = -(policy.log_prob(actions) * advantage).mean() - bonus * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        size = float(logits.grad.norm()) if logits.grad is not None else 0.0
        now = logits.detach().log_softmax(-1)
        kl = float((now.exp() * (now - start)).sum(-1).mean())
        optimizer.step()
        if step % 4 == 0:
            yield {
                "step": step,
                "loss": loss.item(),
                "grad_norm": size,
                "reward": float(rewards.mean()),
                "reward_std": float(rewards.std(0).mean()),
                "entropy": float(policy.entropy().mean()),
                "kl": kl,
                "frac_reward_zero_std": float((rewards.std(0) == 0).float().mean()),
            }


@case("entropy-collapse")
def entropy_collapse() -> Iterator[Row]:
    yield from bandit(160, 3.0, 0.0)


@case("entropy-explosion")
def entropy_explosion() -> Iterator[Row]:
    """A Gaussian policy whose entropy bonus outweighs the return."""
    mean, log_std = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.full((2,), -0.5))
    optimizer = torch.optim.Adam([mean, log_std], lr=0.02)
    for step in range(200):
        policy = torch.distributions.Normal(mean, log_std.exp())
        actions = policy.sample((64,))
        rewards = -0.01 * (actions - 1.0).square().sum(-1)
        advantage = rewards - rewards.mean()
        loss = -(policy.log_prob(actions).sum(-1) * advantage).mean() - 0.5 * policy.entropy().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            yield {
                "time/total_timesteps": step * 64,
                "rollout/ep_rew_mean": float(rewards.mean()),
                "train/std": float(log_std.exp().mean()),
                "train/entropy_loss": -float(policy.entropy().sum()),
                "train/policy_gradient_loss": float(loss),
            }


@case("kl-blowup")
def kl_blowup() -> Iterator[Row]:
    """A policy over sequences of forty tokens that is pushed away from its reference without a penalty."""
    logits = nn.Parameter(torch.zeros(40, 50))
    reference = torch.zeros(40, 50).log_softmax(-1)
    optimizer = torch.optim.Adam([logits], lr=0.08)
    for step in range(150):
        policy = torch.distributions.Categorical(logits=logits)
        tokens = policy.sample((16,))
        rewards = (tokens < 5).float().mean(1) + 0.05 * torch.randn(16)
        advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
        loss = -(policy.log_prob(tokens).sum(1) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = logits.detach().log_softmax(-1)
        if step % 3 == 0:
            yield {
                "step": step,
                "loss": float(loss),
                "reward": float(rewards.mean()),
                "reward_std": float(rewards.std()),
                "kl": float((now.exp() * (now - reference)).sum()),
            }


@case("reward-function-broken")
def reward_function_broken() -> Iterator[Row]:
    """The parser looks for a tag with a blank in it, which no answer holds: the reward is zero for every answer."""
    logits = nn.Parameter(0.1 * torch.randn(8, 12))
    optimizer = torch.optim.Adam([logits], lr=0.05)
    for step in range(120):
        policy = torch.distributions.Categorical(logits=logits)
        actions = policy.sample((8,))
        texts = [f"<answer>{int(a)}</answer>" for a in actions.flatten()]
        rewards = torch.tensor([1.0 if "< answer>" in text else 0.0 for text in texts]).view(8, 8)
        advantage = rewards - rewards.mean(0)
        loss = -(policy.log_prob(actions) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        size = float(logits.grad.norm()) if logits.grad is not None else 0.0
        optimizer.step()
        if step % 4 == 0:
            yield {
                "step": step,
                "loss": loss.item(),
                "grad_norm": size,
                "rewards/format_reward/mean": float(rewards.mean()),
                "reward": float(rewards.mean()),
                "reward_std": float(rewards.std(0).mean()),
                "entropy": float(policy.entropy().mean()),
            }


@case("value-function-failure")
def value_function_failure() -> Iterator[Row]:
    """Returns in the thousands and a critic that is trained at a tiny rate."""
    critic, policy_net = mlp(4, 1, 32), mlp(4, 3, 32)
    slow = torch.optim.Adam(critic.parameters(), lr=1e-5)
    fast = torch.optim.Adam(policy_net.parameters(), lr=1e-3)
    for step in range(150):
        states = torch.randn(256, 4)
        policy = torch.distributions.Categorical(logits=policy_net(states))
        actions = policy.sample()
        returns = -3000 + 900 * states[:, 0] + 60 * (actions == 1).float() + 400 * torch.randn(256)
        values = critic(states).squeeze(1)
        value_loss = F.mse_loss(values, returns)
        advantage = returns - values.detach()
        loss = -(policy.log_prob(actions) * (advantage - advantage.mean()) / advantage.std()).mean()
        explained = 1 - float((returns - values.detach()).var() / returns.var())
        for optimizer, part in ((slow, value_loss), (fast, loss)):
            optimizer.zero_grad()
            part.backward()
            optimizer.step()
        if step % 4 == 0:
            yield {
                "time/total_timesteps": step * 256,
                "rollout/ep_rew_mean": float(returns.mean()),
                "train/value_loss": float(value_loss),
                "train/explained_variance": explained,
                "train/policy_gradient_loss": float(loss),
                "train/entropy_loss": -float(policy.entropy().mean()),
                "train/approx_kl": 0.002 + 0.001 * math.sin(step),
            }


@case("loss-spike-bad-batch")
def loss_spike_bad_batch() -> Iterator[Row]:
    x, y = blobs(2000, spread=2.5)
    model = mlp(16, 4)
    plain = sampler(x, y)

    def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        features, labels = plain(step)
        return (features * 60, labels.flip(0)) if step == 300 else (features, labels)

    yield from train(model, torch.optim.Adam(model.parameters(), lr=2e-3), batch, F.cross_entropy, 500, every=4)


@case("lr-too-high")
def lr_too_high() -> Iterator[Row]:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
    body = nn.TransformerEncoder(layer, 8)
    embed, head = nn.Embedding(32, 32), nn.Linear(32, 32)
    model = nn.ModuleList([embed, body, head])
    data = torch.randint(32, (256, 1)).add(torch.arange(16) * 3).remainder(32)
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-2)
    for step in range(150):
        rows = data[torch.randint(256, (16,))]
        mask = nn.Transformer.generate_square_subsequent_mask(15)
        out = head(body(embed(rows[:, :-1]), mask=mask))
        loss = F.cross_entropy(out.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        size = norm(model)
        optimizer.step()
        yield {"step": step, "loss": loss.item(), "grad_norm": size, "learning_rate": 6e-2}


def main(arguments: list[str]) -> None:
    out, names = Path(arguments[0]), arguments[1:] or list(CASES)
    for name in names:
        cause, function = CASES[name]
        torch.manual_seed(0)
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({k: _short(v) for k, v in row.items()}) for row in function()]
        (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if name == "gradient-clip-too-small":
            (folder / "config.yaml").write_text("lr: 0.05\nmax_grad_norm: 0.01\n", encoding="utf-8")
        made = f"tools/make_curve_cases.py, case {name}: a small training that really ran (torch {torch.__version__})"
        (folder / "case.toml").write_text(f'cause = "{cause}"\nmade_by = "{made}"\n', encoding="utf-8")


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main(sys.argv[1:])
