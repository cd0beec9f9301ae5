"""The context package of the ``ml-training-debugger`` shape: artefacts, symptoms and constraints in one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainwreck.core.errors import TrainwreckError

CODE_KEYS = ("model_code", "code", "training_code", "source")
MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class Context:
    """What a package asks for. ``structured``: its constraints want the package's own result shape back."""

    paths: Sequence[str]
    code: Sequence[str]
    symptoms: Sequence[str]
    structured: bool


def read_package(name: str) -> Context:
    """Read a context package; relative paths in it are relative to its own directory.

    Raises TrainwreckError if the file is missing, no JSON object, or names no artefact.
    """
    path = Path(name)
    try:
        data = json.loads(path.read_bytes()[:MAX_BYTES])
    except OSError as problem:
        raise TrainwreckError(f"{name}: cannot be read ({problem.strerror}); name a JSON file") from problem
    except (ValueError, RecursionError) as problem:
        raise TrainwreckError(f"{name}: is no valid JSON ({problem}); see docs/package.md for its shape") from problem
    artefacts = data.get("artifacts") if isinstance(data, dict) else None
    if not isinstance(artefacts, dict):
        raise TrainwreckError(f'{name}: has no object "artifacts"; see docs/package.md for its shape')
    paths: list[str] = []
    code: list[str] = []
    for key, value in artefacts.items():
        (code if key in CODE_KEYS else paths).extend(_resolved(value, path.parent))
    if not paths:
        paths, code = code, []
    if not paths:
        raise TrainwreckError(f'{name}: "artifacts" names no file; give training_logs, loss_curves or error_messages')
    symptoms = [str(s) for s in data.get("symptoms", []) if isinstance(s, str)]
    wanted = (data.get("constraints") or {}) if isinstance(data.get("constraints"), dict) else {}
    return Context(paths, code, symptoms, wanted.get("output_format") == "structured_diagnosis")


def _resolved(value: Any, base: Path) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value if "://" in value or value == "-" else str(base / value)
    elif isinstance(value, list):
        for item in value:
            yield from _resolved(item, base)
