"""Answers kept by content: the same files, rules and targets give the same answer, so it is not worked out twice.

One JSON file an answer in the user's cache directory, written atomically, the oldest removed beyond a bound. Nothing is
ever unpickled: what is read back is built from a fixed list of our own types.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import trainwreck
from trainwreck.catalogue.load import cache_directory
from trainwreck.core import evidence, fix, program, results
from trainwreck.core.results import Result

FORMAT = 1
MAX_ENTRIES = 200
MAX_BYTES = 64 << 20
"""Bounds of the whole cache. An answer takes 1 to 100 kB, so this is a few hundred projects."""

_TYPES = {
    t.__name__: t
    for t in (
        evidence.Evidence,
        evidence.Where,
        fix.Edit,
        fix.Fix,
        program.Problem,
        results.Cause,
        results.Excerpt,
        results.Finding,
        results.Location,
        results.Reference,
        results.Result,
        results.RuleFacts,
    )
}


def key(contents: Iterable[tuple[str, bytes]], extra: Mapping[str, Any]) -> str:
    """A hash over names and contents, our own code and catalogue, and ``extra`` (targets and what else decides)."""
    digest = hashlib.sha256(f"{FORMAT}\0{_ourselves()}\0{json.dumps(extra, sort_keys=True)}".encode())
    for name, data in contents:
        digest.update(f"\0{name}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
        digest.update(data)
    return digest.hexdigest()[:40]


@cache
def _ourselves() -> str:
    """Version, and the size and time of every file of ours: a checkout that was edited answers anew."""
    digest = hashlib.sha256(trainwreck.__version__.encode())
    root = os.path.dirname(os.path.abspath(trainwreck.__file__))
    todo = [root]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.is_dir(follow_symlinks=False):
                    todo += [entry.path] * (entry.name not in ("__pycache__", "assets", "runs", "failures"))
                elif entry.name.endswith((".py", ".toml", ".json")):
                    status = entry.stat()
                    digest.update(f"{entry.path[len(root) :]}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def directory() -> Path:
    """Where the answers lie."""
    return cache_directory() / "check"


def load(name: str) -> Result | None:
    """The answer of this key, None if there is none or it is damaged."""
    value = read(name)
    return value if isinstance(value, Result) else None


def read(name: str) -> Any:
    """What was kept under this key, None if there is nothing or it is damaged."""
    path = directory() / f"{name}.json"
    try:
        value = _built(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return value


def store(name: str, result: Result) -> None:
    """Keep ``result``."""
    write(name, result)


def write(name: str, value: Any) -> None:
    """Keep a value of our own types. A cache that can't be written is no error."""
    import tempfile  # needed by no check whose answer is known

    with contextlib.suppress(OSError, TypeError, ValueError):
        folder = directory()
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":"))
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(text)
        os.replace(temporary, folder / f"{name}.json")
        _bounded(folder)


def _bounded(folder: Path) -> None:
    entries = sorted(((e.stat().st_mtime, e.stat().st_size, e.path) for e in os.scandir(folder)), reverse=True)
    size = 0
    for number, (_, bytes_, path) in enumerate(entries):
        size += bytes_
        if number >= MAX_ENTRIES or size > MAX_BYTES:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"": type(value).__name__, **{f.name: _plain(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, Mapping):
        return {"": "dict", "items": [[_plain(k), _plain(v)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(type(value).__name__)


def _built(value: Any) -> Any:
    if isinstance(value, list):
        return [_built(item) for item in value]
    if isinstance(value, dict):
        kind = value.pop("")
        if kind == "dict":
            return {_built(k): _built(v) for k, v in value["items"]}
        return _TYPES[kind](**{k: _built(v) for k, v in value.items()})
    return value
