"""Metric learning on synthetic sensor traces: pairs of the same machine should lie close together."""

import csv
import logging

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", filename="train.log")
log = logging.getLogger("train")


class Encoder(nn.Module):
    def __init__(self, width: int = 32, out: int = 8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, out))

    def forward(self, x):
        return self.layers(x)


def make_pairs(n: int, machines: int, generator: torch.Generator):
    centres = torch.randn(machines, 16, generator=generator)
    first = torch.randint(machines, (n,), generator=generator)
    same = torch.rand(n, generator=generator) < 0.5
    second = torch.where(same, first, torch.randint(machines, (n,), generator=generator))
    left = centres[first] + 0.3 * torch.randn(n, 16, generator=generator)
    right = centres[second] + 0.3 * torch.randn(n, 16, generator=generator)
    # A few traces were exported twice, so both halves of those pairs are the same recording.
    twice = torch.arange(n) >= n - 2
    right = torch.where(twice[:, None], left, right)
    return left, right, (first == second).float()


def contrastive_loss(a, b, same, margin: float = 1.0):
    distance = (a - b).pow(2).sum(dim=1).sqrt()
    pull = same * distance.pow(2)
    push = (1 - same) * (margin - distance).clamp(min=0).pow(2)
    return (pull + push).mean()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    left, right, same = make_pairs(4096, 24, generator)
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    log.info("pairs=%d parameters=%d lr=%g batch_size=%d", len(left), sum(p.numel() for p in model.parameters()), 2e-3, 32)
    with open("metrics.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "loss", "grad_norm", "lr"])
        for step in range(1, 161):
            batch = torch.arange((step - 1) * 32, step * 32) % len(left)
            loss = contrastive_loss(model(left[batch]), model(right[batch]), same[batch])
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            writer.writerow([step, f"{loss.item():.5f}", f"{norm.item():.5f}", optimizer.param_groups[0]["lr"]])
            if step % 10 == 0:
                log.info("step %d/160 loss %.4f grad_norm %.3f", step, loss.item(), norm.item())


if __name__ == "__main__":
    main()
