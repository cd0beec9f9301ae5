"""Which program wrote a table, told by its columns, and what its columns mean where the common table can't know."""

from __future__ import annotations

from collections.abc import Sequence

from trainwreck.runs.roles import in_context


def name_format(names: Sequence[str], basename: str) -> str:
    """The format's id; ``csv`` where no known program writes such columns."""
    have = set(names)
    if {"r", "l", "t"} <= have and len(have) <= 12:
        return "sb3-monitor-csv"
    if any(n.startswith("metrics/mAP") or n in ("train/box_loss", "train/obj_loss") for n in have):
        return "ultralytics-results-csv"
    if any(n.startswith(("rollout/", "time/total_timesteps", "time/iterations")) for n in have):
        return "sb3-progress-csv"
    if {"epoch", "train_loss", "eval_loss"} <= have or {"epoch", "train_loss", "eval_top1"} <= have:
        return "timm-summary-csv"
    if any(n.startswith("loss_q") for n in have) or {"param_norm", "grad_norm", "step"} <= have:
        return "openai-diffusion-csv"
    if any("episode reward" in n for n in have):
        return "baselines-progress-csv"
    if {"epoch", "step"} <= have:
        return "lightning-metrics-csv"
    if "epoch" in have and ("loss" in have or "val_loss" in have):
        return "keras-csvlogger"
    if basename.endswith(".tsv") and len(have) <= 3 and ("step" in have or "timestamp" in have):
        return "dvclive-tsv"
    return "csv"


def role_overrides(form: str, names: Sequence[str]) -> dict[str, str | None]:
    """Roles of columns that this program names in its own way, the rest in the context of their neighbours."""
    stripped = [name for name in names if name]
    known = in_context(stripped)
    if form == "sb3-monitor-csv":
        known |= {"r": "reward", "l": "episode-length", "t": "time"}
    if form == "lightning-metrics-csv":
        for name in stripped:
            # A validation batch says little, and its mean over the epoch stands beside it.
            if name.endswith("_step") and f"{name[:-5]}_epoch" in names and (known[name] or "").startswith("eval-"):
                known[name] = None
    if form == "ultralytics-results-csv":
        known["time"] = "time"
    return known
