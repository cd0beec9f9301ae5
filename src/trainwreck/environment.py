"""Facts about this installation for an issue report. Reads metadata only; imports none of the packages it names."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

from trainwreck import __version__

PACKAGES = (
    "torch", "jax", "jaxlib", "flax", "optax", "transformers", "trl", "peft", "accelerate", "datasets", "tokenizers",
    "lightning", "pytorch-lightning", "deepspeed", "bitsandbytes", "flash-attn", "vllm", "sglang", "numpy",
    "tensorboard", "wandb", "mlflow", "keras", "tensorflow", "ultralytics", "stable-baselines3",
)  # fmt: skip


def facts() -> dict[str, str]:
    """Version of trainwreck, Python, the platform, and of each known package that is installed."""
    found = {
        "trainwreck": __version__,
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
