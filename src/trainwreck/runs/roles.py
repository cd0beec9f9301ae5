"""Metric names to roles: one table for all formats (``role_table.py``), asked through ``role_of``.

``in_context`` corrects roles that only the neighbours of a name decide. Under an evaluation split (``eval/``, ``val_``,
``…_test``) a role gets the prefix ``eval-``.

What is optimised
    ``loss`` (training), ``eval-loss``, ``loss-term`` / ``eval-loss-term`` (a component), ``rl-loss`` (the total of a
    run with rewards or a policy: no learning signal of its own, may rise, may start at 0), ``policy-loss``,
    ``value-loss``, ``generator-loss``, ``discriminator-loss``, ``gradient-penalty``
How good it is
    ``metric`` / ``eval-metric`` (higher is better unless ``lower_is_better(name)``), ``perplexity`` /
    ``eval-perplexity``
Optimisation
    ``lr``, ``grad-norm``, ``grad-norm-term`` (of one layer), ``loss-scale``, ``skipped`` (steps), ``nan-count``,
    ``weight-norm``, ``weight-norm-term``, ``update-ratio``, ``coefficient`` (beta, entropy or KL weight, clip range …)
Reinforcement learning and preference training
    ``reward`` / ``eval-reward``, ``reward-term`` (one reward function), ``reward-std``, ``reward-term-std``,
    ``zero-spread`` (share of groups without spread), ``reward-chosen``, ``reward-rejected``, ``reward-margin``,
    ``reward-accuracy``, ``logps``, ``kl``, ``entropy``, ``neg-entropy`` (SB3's ``entropy_loss``: minus the entropy),
    ``explained-variance``, ``clip-fraction``, ``ratio``, ``advantage``, ``length`` (of an answer), ``length-clipped``,
    ``episode-length``, ``action-std``, ``exploration``
Models with parts
    ``codebook-usage`` (share or number of codes in use), ``codebook-perplexity``, ``dead-codes``, ``expert-load``,
    ``discriminator-real``, ``discriminator-fake``, ``logit-scale``, ``dead-units`` (share of zero activations)
The machine
    ``throughput``, ``step-time``, ``data-time``, ``time`` (elapsed or a clock), ``memory``, ``gpu-util``
Counters
    ``epoch``, ``progress`` (samples, tokens, updates so far), ``batch-size``
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from trainwreck.runs.role_table import LOWER, TABLE, TERM

LOSS_ROLES = (
    "loss",
    "eval-loss",
    "loss-term",
    "eval-loss-term",
    "rl-loss",
    "policy-loss",
    "value-loss",
    "generator-loss",
    "discriminator-loss",
)
"""Everything that is minimised somewhere: none of it may be NaN."""

_EVAL = frozenset(("eval", "evaluation", "val", "valid", "validation", "test", "testing", "dev", "heldout", "holdout"))
_TRAIN = frozenset(("train", "training", "trn"))
_AGGREGATE = re.compile(
    r"^(?:(?:mean|avg|average|running|smooth|smoothed|moving|ema|batch|step|epoch|iter|iteration|current|cur|global|overall)_)+"
    r"(?=.)|(?:[_/@](?:step|epoch|batch|iter|iteration|iterations|mean|avg|average|global_avg|ema|smooth|smoothed|running"
    r"|value|total|vs|samples|steps))+$"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[a-z]{3})(?=[A-Z])|(?<=[A-Z]{2})(?=[A-Z][a-z])")
_BLANKS = re.compile(r"[\s\-:]+|(?<=[A-Za-z])\.(?=[A-Za-z])|\\")
_TAIL = re.compile(r"\((?:[bpmo]|avg|mean|total|train|ms|s|%)\)$|[_/]+$")
_SPLITTERS = re.compile(r"([/_])")
_RL = frozenset(("policy-loss", "reward", "neg-entropy", "advantage", "clip-fraction", "zero-spread", "episode-length"))
_MACHINE = frozenset(("time", "step-time", "data-time", "memory", "gpu-util"))
_NO_EVAL_FORM = frozenset(("epoch", "lr", "progress", "batch-size", "coefficient", "grad-norm", "weight-norm"))
_CODEBOOK = re.compile(r"vq|codebook|commit|quantiz")
_YARDSTICK = re.compile(
    r"(^|[_/])(persistence|naive|baseline|chance|majority|dummy|trivial|climatology|oracle)[_/](?!loss)"
)
"""What the model is compared with: it does not learn, so its figure may stand still."""
_LONGEST = 200
"""A longer name is no metric's name; it bounds the work of the expressions."""


@lru_cache(maxsize=8192)
def role_of(name: str) -> str | None:
    """The role of a metric of this name, None if it is not known."""
    if len(name) > _LONGEST or name.endswith(("__MIN", "__MAX")):
        return None  # W&B's tables carry the extremes of each point beside it
    name = name.rpartition(" - ")[2]  # and put the name of the run before that of the metric
    split, base = split_of(name)
    role = _bare_role(base) if base and not _YARDSTICK.search(base) else None
    if split != "eval" or role is None or role.startswith("eval-") or role in _NO_EVAL_FORM:
        return role
    if role in _MACHINE:
        return None  # how long an evaluation took says nothing of the training
    if role == "loss-term" and not _named_term().search(base):
        role = "loss"  # several evaluation sets: eval_<set>_loss with no plain eval_loss
    return f"eval-{role}"


def lower_is_better(name: str) -> bool:
    """True for losses and error-like metrics (``mse``, ``wer``, ``fid``, perplexity): they improve by falling."""
    _, base = split_of(name)
    bare = _AGGREGATE.sub("", base) or base
    return bool(_error_like().search(bare)) or (_bare_role(base) if base else None) in LOSS_ROLES


def split_of(name: str) -> tuple[str | None, str]:
    """("eval" | "train" | None, the bare name): ``val/Box_Loss`` gives ("eval", "box_loss")."""
    text = _BLANKS.sub("_", _CAMEL.sub("_", name.strip())).lower().strip("_/")
    text = _TAIL.sub("", re.sub(r"_{2,}", "_", text)).strip("_/")
    parts = _SPLITTERS.split(text)
    words = parts[0::2]
    split: str | None = None
    for index, word in enumerate(words):
        kind = "eval" if word in _EVAL else "train" if word in _TRAIN else None
        if kind is None or (word == "dev" and index and words[index - 1] in ("std", "standard")):
            continue
        split = split or kind
        words[index] = ""
    if split is None:
        return None, text
    joined = words[0]
    for separator, word in zip(parts[1::2], words[1:], strict=True):
        if word:
            joined += (separator if joined else "") + word
    return split, joined


def in_context(names: Iterable[str]) -> dict[str, str | None]:
    """The roles of all series of one run, corrected by their company.

    - With rewards, a policy or episodes beside it the total ``loss`` is ``rl-loss``.
    - ``perplexity`` beside a commitment or codebook loss is that of the codebook.
    - A single component without a total is the loss of the run.
    - Beside ``train_runtime`` the ``train_loss`` of a Hugging Face Trainer is the mean over the run, no curve.
    """
    roles = {name: role_of(name) for name in names}
    if roles.keys() & {"train_runtime", "train/train_runtime"} and sum(role == "loss" for role in roles.values()) > 1:
        roles |= {name: None for name in roles if name in ("train_loss", "train/train_loss")}
    present = set(roles.values())
    if present & _RL:
        roles |= {name: "rl-loss" for name, role in roles.items() if role == "loss"}
    if any(_CODEBOOK.search(name.lower()) for name in roles):
        for name, role in roles.items():
            if role in ("perplexity", "eval-perplexity") and split_of(name)[1] in ("perplexity", "ppl"):
                roles[name] = role.replace("perplexity", "codebook-perplexity")
    for total, term in (("loss", "loss-term"), ("eval-loss", "eval-loss-term")):
        terms = [name for name, role in roles.items() if role == term]
        adversarial = present & {"generator-loss", "discriminator-loss"}
        if len(terms) == 1 and total not in present and not adversarial and not present & _RL:
            roles[terms[0]] = total
    return roles


def _bare_role(base: str) -> str | None:
    bare = _AGGREGATE.sub("", base) or base
    role = _lookup(base)
    if bare != base and role in (None, "loss-term"):
        role = _lookup(bare) or role  # epoch_loss, kl_mean: the aggregate says nothing
    return role


def _lookup(text: str) -> str | None:
    return next((role for pattern, role in _compiled() if pattern.search(text)), None)


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], str | None], ...]:
    return tuple((re.compile(pattern, re.VERBOSE), role) for role, pattern in TABLE)


@cache
def _named_term() -> re.Pattern[str]:
    return re.compile(rf"(^|[/_])({TERM})[_/]?loss|loss(es)?[_/]({TERM})([_/]|$)")


@cache
def _error_like() -> re.Pattern[str]:
    return re.compile(rf"(^|/)([a-z]+_)?({LOWER}|perplexity|ppl)$")
