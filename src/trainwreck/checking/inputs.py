"""Configurations that their own language refuses: one finding each, and nothing in them is ever evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trainwreck.core.program import Problem
from trainwreck.core.source import Source

MAX_BYTES = 1 << 20
"""A larger JSON or YAML file is data, not a configuration that somebody wrote."""
MAX_NODES = 1_000_000
"""Nodes that a YAML file may expand to through its aliases: real configurations stay below a few thousand."""

ML_WORDS = re.compile(
    rb"\b(?:torch|pytorch|transformers|trl|peft|accelerate|lightning|pytorch_lightning|deepspeed|vllm|sglang|jax|flax|optax"
    rb"|sklearn|scikit-learn|tensorflow|keras|diffusers|datasets|bitsandbytes|unsloth|xgboost|lightgbm|timm|evaluate"
    rb"|monai|fastai|gymnasium|stable_baselines3|sentence_transformers|tokenizers|torchvision|torchaudio|einops|equinox"
    rb"|haiku|catboost|huggingface_hub|numpy|pandas|safetensors|ray|torchrun|llamafactory|axolotl|hydra"
    rb"|learning_rate|num_train_epochs|per_device_train_batch_size|micro_batch_size|zero_optimization|finetuning_type)\b"
)
"""Words without which a file has nothing to do with what the rules are about."""
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\$\{\{")
_COMMENTED_JSON = re.compile(r"(?:^|/)(?:tsconfig|jsconfig|\.eslintrc|\.vscode/|\.devcontainer/|devcontainer)[^/]*")
_DANGEROUS = re.compile(r"python/(?:object/(?:apply|new)|object):")


def speaks_of_training(sources: Sequence[Source], contents: dict[str, bytes]) -> bool:
    """True if any of the files names a library of the field."""
    return any(ML_WORDS.search(contents.get(s.name, s.head)) for s in sources)


def problems(sources: Sequence[Source], contents: dict[str, bytes], named: set[str]) -> Iterator[Problem]:
    """What is wrong with the configurations. Templates and JSON with comments are no errors."""
    for source in sources:
        base = source.basename
        data = contents.get(source.name)
        if data is None or not base.endswith((".yaml", ".yml", ".json", ".toml")):
            continue
        if len(data) > MAX_BYTES:
            if source.name in named:
                yield Problem(source.name, f"is larger than {MAX_BYTES >> 20} MB and was left out")
            continue
        text = data.decode(source.encoding, "replace").lstrip("\ufeff")
        if _TEMPLATE.search(text):
            continue
        found = _yaml(source.name, text) if base.endswith((".yaml", ".yml")) else _other(source.name, base, text)
        if found is not None:
            yield found


def _other(name: str, base: str, text: str) -> Problem | None:
    if base.endswith(".toml"):
        import tomllib

        try:
            tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as problem:
            where = re.search(r"at line (\d+), column (\d+)", str(problem))
            line, column = (int(where[1]), int(where[2])) if where else (1, 1)
            reason = re.sub(r" \(at .*\)$", "", str(problem)) or "nested too deeply"
            return Problem(name, f"no valid TOML: {reason}", line, column, syntax=True)
        return None
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        if _COMMENTED_JSON.search(name) or re.search(r"^\s*//|/\*", text, re.MULTILINE) or _json_lines(text):
            return None
        return Problem(name, f"no valid JSON: {problem.msg}", problem.lineno, problem.colno, syntax=True)
    except (ValueError, RecursionError):
        return Problem(name, "no valid JSON: nested too deeply or a number too long", 1, 1, syntax=True)
    return None


def _json_lines(text: str) -> bool:
    """JSON lines under the wrong suffix are data, not a broken file."""
    import json

    rows = [row for row in text.splitlines()[:3] if row.strip()]
    try:
        return len(rows) > 1 and all(isinstance(json.loads(row), (dict, list)) for row in rows)
    except (ValueError, RecursionError):
        return False


def _yaml(name: str, text: str) -> Problem | None:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    anchors: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    total = 0
    try:
        events: Any = yaml.parse(text, Loader=loader)
        for event in events:
            kind = type(event).__name__
            if getattr(event, "tag", None) and _DANGEROUS.search(event.tag or ""):
                told = "carries a tag that would run code when loaded; it was not evaluated, load it with safe_load"
                return Problem(name, told, event.start_mark.line + 1, event.start_mark.column + 1)
            if kind in ("MappingStartEvent", "SequenceStartEvent"):
                open_nodes.append((event.anchor, total))
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                anchor, before = open_nodes.pop()
                if anchor:
                    anchors[anchor] = total - before + 1
            elif kind == "ScalarEvent" and event.anchor:
                anchors[event.anchor] = 1
            if kind == "AliasEvent":
                total += anchors.get(event.anchor, 1)
            elif kind.endswith(("StartEvent", "ScalarEvent")):
                total += 1
            if total > MAX_NODES:
                line = event.start_mark.line + 1
                told = f"its aliases expand to more than {MAX_NODES:,} nodes; it was not expanded"
                return Problem(name, told, line, 1)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        reason = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return Problem(name, f"no valid YAML: {reason}", line, column, syntax=True)
    except (RecursionError, ValueError):
        return Problem(name, "no valid YAML: nested too deeply", 1, 1, syntax=True)
    return None
