"""What columns of a table are: the step, the epoch, words, metrics. Shared by the readers of tables and JSON rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from trainwreck.core.run import StepUnit
from trainwreck.runs.roles import role_of

_STEPS: tuple[tuple[str, StepUnit], ...] = (
    (r"(trainer/|train/|training/)?global_?step|_step|steps?|current_steps?|training_step", "step"),
    (r"(train/)?iter(ation)?s?|num_updates|updates?|global_iter|n_iter|it|(training|current)_iter(ation)?", "step"),
    (r"time/total_timesteps|total_?timesteps|timesteps?(_total)?|env_steps?|total_env_steps|frames?", "env-step"),
    (r"num_env_steps_sampled\w*|total_?env_?interacts", "env-step"),
    (r"(train/)?epochs?|epoch_?(num|idx|no|number)|round|ep", "epoch"),
    (r"i|idx|index|batch(_?idx)?|unnamed.*|episodes?|n|t|samples?|tokens?|", "step"),
)
_COMPILED = tuple((re.compile(pattern), unit) for pattern, unit in _STEPS)
_EPOCH = re.compile(r"(train/)?epochs?|ep")
_SPLIT_COLUMN = re.compile(r"(phase|split|mode|stage|set|subset|partition|type|kind|part)")
_SPLIT_VALUES = frozenset(
    ("train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev", "tr", "va")
)
_KEY_COLUMN = re.compile(r"(metric|name|key|tag|variable|metric_?name|series)s?")
_VALUE_COLUMN = re.compile(r"(value|val|scalar|metric_?value|y)")
_GROUP_COLUMN = re.compile(
    r"(k_?)?folds?(_?(id|idx|no|num|number))?|cv(_?fold)?|seed|run(_?(id|idx|no|name))?|trial|repeat|repetition"
)

STRONG = frozenset(
    (
        *("loss", "eval-loss", "loss-term", "eval-loss-term", "policy-loss", "value-loss", "generator-loss"),
        *("discriminator-loss", "reward", "eval-reward", "lr", "grad-norm", "perplexity", "eval-perplexity", "kl"),
        *("reward-margin", "codebook-usage", "codebook-perplexity", "loss-scale", "reward-accuracy", "neg-entropy"),
    )
)
"""Roles that nothing but a training has; a column ``score`` or ``error`` occurs in any data set."""
WEAK = frozenset(("metric", "eval-metric", "entropy", "throughput", "explained-variance", "episode-length"))


def plain(name: str) -> str:
    """A column name for comparison: lower case, blanks and dashes as ``_``."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def step_column(names: Sequence[str]) -> tuple[int, StepUnit] | None:
    """Index and unit of the column that counts the steps, by its name; None if no name says so."""
    known = [plain(name) for name in names]
    for pattern, unit in _COMPILED:
        for index, name in enumerate(known):
            if pattern.fullmatch(name):
                return index, unit
    return None


def step_candidates(names: Sequence[str]) -> list[tuple[int, StepUnit]]:
    """All columns that may count steps, the most likely first."""
    known = [plain(name) for name in names]
    return [(i, unit) for pattern, unit in _COMPILED for i, name in enumerate(known) if pattern.fullmatch(name)]


def epoch_column(names: Sequence[str]) -> int | None:
    return next((i for i, name in enumerate(names) if _EPOCH.fullmatch(plain(name))), None)


def group_column(names: Sequence[str]) -> int | None:
    """The column that tells folds, seeds or trials apart."""
    return next((i for i, name in enumerate(names) if _GROUP_COLUMN.fullmatch(plain(name))), None)


def split_column(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int | None:
    """The column that says train or validation in words."""
    for index, name in enumerate(names):
        if _SPLIT_COLUMN.fullmatch(plain(name)):
            words = {row[index].strip().lower() for row in rows if index < len(row)}
            if words and words <= _SPLIT_VALUES:
                return index
    return None


def key_and_value(names: Sequence[str]) -> tuple[int, int] | None:
    """(name column, value column) of a long table, None for a wide one."""
    keys = [i for i, name in enumerate(names) if _KEY_COLUMN.fullmatch(plain(name))]
    values = [i for i, name in enumerate(names) if _VALUE_COLUMN.fullmatch(plain(name))]
    return (keys[0], values[0]) if len(keys) == 1 and len(values) == 1 and keys != values else None


def is_metrics(names: Iterable[str], *, has_step: bool, all_numeric: bool) -> bool:
    """Do these columns belong to a training rather than to a data set or a table of results?

    With a step one role of a training suffices (or a metric of any kind), without one a plain loss must stand among
    numbers only, and half of the columns must mean something.
    """
    roles = [role_of(name) for name in names]
    strong = sum(role in STRONG for role in roles)
    weak = sum(role in WEAK for role in roles)
    if has_step:
        return strong > 0 or weak > 0
    known = sum(role is not None for role in roles)
    return all_numeric and bool({"loss", "eval-loss"} & set(roles)) and known >= len(roles) / 2


def counts(values: Sequence[float]) -> bool:
    """Could these be steps: whole or growing numbers that do not fall more often than attempts restart?"""
    if not values:
        return False
    falls = sum(b < a for a, b in pairwise(values))
    return falls <= max(1, len(values) // 10) and all(value >= -1 for value in values)


def by_split(names: Sequence[str], splits: Mapping[str, str], word: str) -> tuple[str, ...]:
    """``names`` with the split in front: ``("loss",)`` of a validation row gives ``("val/loss",)``."""
    prefix = splits.get(word, word)
    return tuple(f"{prefix}/{name}" for name in names)
