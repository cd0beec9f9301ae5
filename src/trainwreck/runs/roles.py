"""Metric names to roles: one table for all formats.

Roles: ``loss`` (training), ``loss-term`` (a component), ``eval-loss``, ``metric`` / ``eval-metric`` (higher is better unless
noted in ``LOWER_IS_BETTER``), ``lr``, ``grad-norm``, ``loss-scale``, ``skipped``, ``kl``, ``entropy``, ``reward``, ``reward-term``,
``reward-std``, ``value-loss``, ``policy-loss``, ``explained-variance``, ``clip-fraction``, ``length``, ``advantage``,
``throughput``, ``memory``, ``epoch``, ``perplexity``, ``codebook-usage``, ``weight-norm``, ``action-std``.
"""

from __future__ import annotations

import re

_TABLE: tuple[tuple[str, str], ...] = (
    (r"(^|[/_ ])(grad(ient)?[_ ]?norm|gnorm)$", "grad-norm"),
    (r"(^|[/_ ])(lr|learning[_ ]?rate)([/_-]?(pg)?\d+)?$|^lr[-/]", "lr"),
    (r"^(eval|val|valid|validation|test|dev)([/_ .-].*)?[/_ .-]?loss$|^(eval|val|valid|test)_?loss$", "eval-loss"),
    (r"^(train[/_ ]?)?(loss|lm loss|total_loss|mean_loss)([_/](step|epoch))?$", "loss"),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), role) for pattern, role in _TABLE)


def role_of(name: str) -> str | None:
    """The role of a metric of this name, None if it is not known."""
    stripped = name.strip()
    return next((role for pattern, role in _COMPILED if pattern.search(stripped)), None)
