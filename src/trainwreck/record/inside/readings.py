"""How predictions and targets of a loss function agree, in a few numbers. On a device they stay unread."""

from __future__ import annotations

from typing import Any

import torch

ROWS = 4096
"""Rows that are looked at."""


def probability_mass(scores: Any) -> float | None:
    """Mean over rows of the sum of ``exp(scores)``: 1 for log-probabilities. None where reading would wait."""
    if scores.device.type != "cpu" or scores.dim() != 2:
        return None
    return float(scores.detach()[:ROWS].float().exp().sum(dim=1).mean())


def classification(scores: Any, target: Any, ignore_index: Any) -> dict[str, Any]:
    """From log-probabilities (rows, classes) and class labels.

    ``accuracy``; ``entropy`` of the predictions (nats), ``range`` (mean spread between the best and the worst class);
    ``classes``; ``ignored`` share of labels; ``predicted_top`` and ``label_top`` (share of the most frequent class),
    ``label_class`` (which one), ``label_entropy`` (nats) and ``loss`` (mean over what is not ignored). ``diagonal``:
    share of rows whose label is their own number, as where each of two views has to find the other.
    """
    if scores.dim() == 4:
        scores, target = scores.permute(0, 2, 3, 1).flatten(0, 2), target.flatten()
    if scores.dim() != 2 or target.dim() != 1 or not target.numel():
        return {}
    stride = max(1, target.numel() // ROWS)
    own = torch.arange(target.numel(), device=target.device) if target.numel() == scores.shape[1] else None
    diagonal = (target.detach() == own).float().mean() if own is not None else 0.0
    scores, target = scores.detach()[::stride].float(), target.detach()[::stride]
    classes = scores.shape[1]
    valid = (target >= 0) & (target < classes)
    if isinstance(ignore_index, int):
        signed = ignore_index - (1 << 64) if ignore_index >= 1 << 63 else ignore_index
        valid &= target != signed
    weight = valid.float()
    count = weight.sum().clamp(min=1.0)
    safe = target.clamp(0, classes - 1)
    best = scores.argmax(dim=1)
    labels = torch.zeros(classes, device=scores.device).scatter_add_(0, safe, weight) / count
    guesses = torch.zeros(classes, device=scores.device).scatter_add_(0, best, weight) / count
    mass = scores.exp()
    return {
        "classes": float(classes),
        "rows": float(target.numel()),
        "ignored": 1.0 - weight.mean(),
        "accuracy": ((best == safe).float() * weight).sum() / count,
        "loss": -(scores.gather(1, safe[:, None])[:, 0] * weight).sum() / count,
        "entropy": -((mass * scores.clamp(min=-80.0)).sum(dim=1) * weight).sum() / count,
        "range": ((scores.amax(dim=1) - scores.clamp(min=-80.0).amin(dim=1)) * weight).sum() / count,
        "label_top": labels.max(),
        "label_class": labels.argmax().float(),
        "label_entropy": -(labels * labels.clamp(min=1e-12).log()).sum(),
        "predicted_top": guesses.max(),
        "diagonal": diagonal,
    }


def regression(scores: Any, target: Any) -> dict[str, Any]:
    """From predictions and targets of one shape: means, standard deviations, ``correlation`` over all elements."""
    if scores.shape != target.shape or target.numel() < 2 or not target.is_floating_point():
        return {}
    stride = max(1, target.numel() // (16 * ROWS))
    scores, target = scores.detach().reshape(-1)[::stride].float(), target.detach().reshape(-1)[::stride].float()
    a, b = scores - scores.mean(), target - target.mean()
    deviations = a.square().mean().sqrt(), b.square().mean().sqrt()
    return {
        "predicted_mean": scores.mean(),
        "target_mean": target.mean(),
        "predicted_std": deviations[0],
        "target_std": deviations[1],
        "correlation": (a * b).mean() / (deviations[0] * deviations[1]).clamp(min=1e-20),
        "loss": (scores - target).square().mean(),
    }


def binary(scores: Any, target: Any, *, logits: bool) -> dict[str, Any]:
    """From scores and targets in 0..1: ranges, accuracy, shares of positives."""
    if scores.shape != target.shape or not target.numel():
        return {}
    stride = max(1, target.numel() // (16 * ROWS))
    scores, target = scores.detach().reshape(-1)[::stride].float(), target.detach().reshape(-1)[::stride].float()
    guess = scores > (0.0 if logits else 0.5)
    return {
        "min": scores.min(),
        "max": scores.max(),
        "std": scores.std() if scores.numel() > 1 else torch.zeros(()),
        "positives": target.mean(),
        "predicted_positives": guess.float().mean(),
        "accuracy": (guess == (target > 0.5)).float().mean(),
        "target_min": target.min(),
        "target_max": target.max(),
    }
