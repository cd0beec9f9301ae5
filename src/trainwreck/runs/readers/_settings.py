"""Settings out of nested configuration: dotted keys, values, the line that decides each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from trainwreck.core.evidence import Where
from trainwreck.core.run import Setting

MAX_SETTINGS = 1500
MAX_DEPTH = 6
MAX_TEXT = 500

_NOT_TRAINING = re.compile(
    r"tokenizer|vocab|merges|added_tokens|special_tokens|preprocessor_config|package(-lock)?\.json|tsconfig|\.index\.json"
    r"|dataset_info|dataset_dict|chat_template|docker-compose|\.ipynb|schema|pre-commit|mkdocs|environment\.ya?ml|conda"
)
_KNOWN_FILES = re.compile(
    r"(config|args?|hparams|params|hyper_?params|hyp|opt|options|settings|training_args|trainer_config|run_config|arguments)"
    r"(\.|_|$)|^(adapter_config|generation_config|ds_config|deepspeed|zero\d|fsdp|accelerate)"
)
_KNOWN_KEYS = frozenset(
    (
        "accumulate_grad_batches", "amp", "architectures", "batch_size", "beta", "bf16", "codebook_size", "criterion",
        "dataset", "devices", "dropout", "embed_dim", "epochs", "finetuning_type", "fp16", "gamma", "grad_clip",
        "gradient_accumulation_steps", "gradient_clipping", "hidden_dim", "hidden_size", "imgsz", "latent_dim",
        "learning_rate", "lora_alpha", "lora_r", "loss", "lr", "lr0", "lr_scheduler", "lr_scheduler_type", "max_epochs",
        "max_grad_norm", "max_steps", "micro_batch_size", "model", "model_name", "model_name_or_path", "model_type",
        "momentum", "n_embd", "n_head", "n_layer", "n_steps", "num_classes", "num_epochs", "num_layers",
        "num_train_epochs", "num_workers", "optim", "optimizer", "patience", "per_device_train_batch_size", "precision",
        "r", "scheduler", "seed", "stage", "strategy", "target_modules", "task", "torch_dtype", "total_timesteps",
        "train_batch_size", "train_micro_batch_size_per_gpu", "vocab_size", "warmup_ratio", "warmup_steps",
        "weight_decay", "zero_optimization"
    )
)  # fmt: skip


def is_settings(document: Mapping[Any, Any], basename: str) -> bool:
    """Does this mapping configure a training? A known name with one known key, or any name with two."""
    if _NOT_TRAINING.search(basename):
        return False
    keys = {str(key).lower().rsplit(".", 1)[-1] for key in _keys(document)}
    known = len(keys & _KNOWN_KEYS)
    return known >= 2 or (known >= 1 and bool(_KNOWN_FILES.search(basename)))


def _keys(document: Mapping[Any, Any], depth: int = 0) -> Iterator[Any]:
    for key, value in islice(document.items(), MAX_SETTINGS):
        yield key
        if isinstance(value, Mapping) and depth < 2:
            yield from _keys(value, depth + 1)


def settings_of(
    document: Mapping[Any, Any], path: str, lines: Mapping[tuple[str, ...], int] | None = None
) -> dict[str, Setting]:
    """Leaves of ``document`` by dotted key. ``lines`` gives the line of a key path where it is known."""
    found: dict[str, Setting] = {}
    for keys, value in _leaves(document, (), 0):
        if len(found) >= MAX_SETTINGS:
            break
        name = ".".join(keys)
        line = (lines or {}).get(keys)
        found[name] = Setting(name, value, Where("config", path=path, line=line, key=name))
    return found


def _leaves(node: Mapping[Any, Any], above: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in node.items():
        keys = (*above, str(key)[:100])
        if isinstance(value, Mapping):
            if set(value) in ({"value"}, {"value", "desc"}, {"desc", "value"}):  # the way W&B writes a setting
                value = value["value"]
            if isinstance(value, Mapping):
                if depth < MAX_DEPTH and not str(key).startswith("_wandb"):
                    yield from _leaves(value, keys, depth + 1)
                continue
        if isinstance(value, (list, tuple)):
            if len(value) <= 16 and all(isinstance(item, (str, int, float, bool, type(None))) for item in value):
                yield keys, [item[:MAX_TEXT] if isinstance(item, str) else item for item in value]
        elif isinstance(value, str):
            yield keys, value[:MAX_TEXT]
        elif isinstance(value, (int, float, bool, type(None))):
            yield keys, value


def json_lines_of_keys(text: str) -> dict[tuple[str, ...], int]:
    """Line of each key of an indented JSON document, by its path; empty for one that stands on a single line."""
    found: dict[tuple[str, ...], int] = {}
    stack: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _JSON_KEY.match(line)
        if not match:
            continue
        indent, key = len(match.group(1)), match.group(2)
        while stack and stack[-1][0] >= indent:
            stack.pop()
        found.setdefault((*(name for _, name in stack), key), number)
        stack.append((indent, key))
        if number > 20_000:
            break
    return found


_JSON_KEY = re.compile(r'^(\s*)"([^"\\]{1,100})"\s*:')
