"""Roles that a name alone does not tell, but its company in the same log does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainwreck.runs.roles import role_of

_ALIASES: Mapping[str, str] = {
    "batch_cost": "step-time",
    "reader_cost": "data-time",
    "trl": "loss",
    "tel": "eval-loss",
    "hel": "eval-metric",
    "训练损失": "loss",
    "损失": "loss",
    "平均损失": "loss",
    "验证损失": "eval-loss",
    "测试损失": "eval-loss",
    "准确率": "metric",
    "学习率": "lr",
}
"""llm.c's main.log (train loss, test loss, HellaSwag accuracy), Paddle's times, Chinese prints."""
_OBJECTIVE = re.compile(
    r"^(?:total|objective|cost|criterion|energy|elbo|nelbo|neg[_ ]elbo|nll|ce|bce|xent|mse|mae|rmse|huber|l1"
    r"|l2|error|err|contrastive|infonce|ntxent"
    r"|rec(?:on\w*)?|supervised|sup|mlm|clm|ctc|dice|cls|logloss|deviance|perplexity_loss)$",
    re.IGNORECASE,
)
"""Training quantities that a script prints in place of a loss. Order of the names in the log decides among them."""


UNNAMED = " (unnamed)"
"""Ends the name of a column of numbers that the log does not name."""


def roles(names: list[str], ends: list[str]) -> dict[str, str]:
    """Roles for those of ``names`` (in the order in which they were first printed) that get one from their company;
    ``ends`` are the names in closing lines."""
    found = {name: _ALIASES[name.lower()] for name in names if name.lower() in _ALIASES}
    known = {name: found.get(name) or role_of(name) for name in names}
    if "D" in known and "G" in known:
        found |= {"D": "discriminator-loss", "G": "generator-loss"}
    if "learn" in known and "test" in known:
        found |= {"learn": "loss", "test": "eval-loss"}
    losses = {"loss", "policy-loss", "value-loss", "discriminator-loss", "generator-loss"}
    if losses.isdisjoint({*known.values(), *found.values()}):
        total = next((n for n in names if n.lower() == "total"), None)
        chosen = total or next((n for n in names if _OBJECTIVE.match(n) and known[n] in (None, "metric")), None)
        if chosen is not None:
            found[chosen] = "loss"
        elif "loss" in ends:
            found |= {name: "loss" for name in names if name.endswith(UNNAMED)}
    return found
