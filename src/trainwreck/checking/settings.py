"""Settings from ``[tool.trainwreck]`` of pyproject.toml or from trainwreck.toml: the nearest file up the tree wins."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from trainwreck.core.errors import TrainwreckError
from trainwreck.core.frozen import Frozen

SEVERITY_NAMES = ("critical", "warning", "suggestion", "never")


class Settings(Frozen):
    """What a project asks of ``check``.

    Ids, families and id prefixes may stand in the selections; ``ALL`` is everything.

    ``target``: versions to check against, by package name. ``root``: the directory of the file that set them.
    """

    select: Sequence[str] = ()
    extend_select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    per_file_ignores: Mapping[str, Sequence[str]] = field(default_factory=dict)
    exclude: Sequence[str] = ()
    target: Mapping[str, str] = field(default_factory=dict)
    fail_on: str = "critical"
    baseline: str | None = None
    preview: bool = False
    root: Path | None = None
    path: Path | None = None


_LISTS = ("select", "extend-select", "ignore", "exclude")
KEYS = (*_LISTS, "per-file-ignores", "target", "fail-on", "baseline", "preview")


def find(start: Path) -> Settings:
    """The settings that hold for ``start``: of its own directory or the nearest one above that has any.

    Raises TrainwreckError for a file that is no TOML, an unknown key (naming the nearest known one) or a wrong value.
    """
    directory = start if start.is_dir() else start.parent
    for folder in [directory.resolve(), *directory.resolve().parents]:
        found = _of(folder)
        if found is not None:
            return found
    return Settings()


def _of(folder: Path) -> Settings | None:
    own = folder / "trainwreck.toml"
    if own.is_file():
        return parse(_toml(own), own)
    project = folder / "pyproject.toml"
    if project.is_file():
        tool = _toml(project).get("tool", {})
        if isinstance(tool, dict) and "trainwreck" in tool:
            return parse(tool["trainwreck"], project)
    return None


class Finder:
    """The settings of many paths; each directory is looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, Settings] = {}

    def __call__(self, path: str) -> Settings:
        """The settings that hold for the file ``path``. Raises TrainwreckError as ``find`` does."""
        folder = os.path.dirname(os.path.abspath(path))
        asked: list[str] = []
        while folder not in self._known:
            asked.append(folder)
            found = _of(Path(folder))
            above = os.path.dirname(folder)
            if found is None and above != folder:
                folder = above
                continue
            self._known[folder] = found or Settings()
        settings = self._known[folder]
        for name in asked:
            self._known[name] = settings
        return settings


def shown(settings: Settings) -> str:
    """The settings as a TOML file would give them, with where they come from as a comment."""
    import json

    def value(item: Any) -> str:
        if isinstance(item, (list, tuple)):
            return "[" + ", ".join(json.dumps(i) for i in item) + "]"
        return json.dumps(item)

    rows = [f"# {settings.path or 'no settings file; these are the defaults'}"]
    for key in KEYS:
        item = getattr(settings, key.replace("-", "_"))
        if isinstance(item, dict):
            inner = ", ".join(f"{json.dumps(k)} = {value(v)}" for k, v in sorted(item.items()))
            rows.append(f"{key} = {{ {inner} }}" if inner else f"{key} = {{}}")
        elif item is not None:
            rows.append(f"{key} = {value(item)}")
    return "\n".join(rows) + "\n"


def parse(data: Any, path: Path | None = None) -> Settings:
    """Settings from a parsed table. Raises TrainwreckError as ``find`` does."""
    where = str(path) if path else "--config"
    if not isinstance(data, dict):
        raise TrainwreckError(f"{where}: the trainwreck settings must be a table")
    for key in data:
        if key not in KEYS:
            import difflib

            close = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.4)
            hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(KEYS)}"
            raise TrainwreckError(f"{where}: unknown key {key!r}{hint}")
    lists = {key: _strings(data.get(key, []), key, where) for key in _LISTS}
    files = data.get("per-file-ignores", {})
    if not isinstance(files, dict):
        raise TrainwreckError(f"{where}: per-file-ignores must be a table of patterns")
    fail_on = data.get("fail-on", "critical")
    if fail_on not in SEVERITY_NAMES:
        raise TrainwreckError(f"{where}: fail-on must be one of {', '.join(SEVERITY_NAMES)}, not {fail_on!r}")
    baseline, preview = data.get("baseline"), data.get("preview", False)
    if baseline is not None and not isinstance(baseline, str):
        raise TrainwreckError(f"{where}: baseline must be a file name")
    if not isinstance(preview, bool):
        raise TrainwreckError(f"{where}: preview must be true or false")
    return Settings(
        select=lists["select"],
        extend_select=lists["extend-select"],
        ignore=lists["ignore"],
        exclude=lists["exclude"],
        per_file_ignores={p: _strings(v, f"per-file-ignores.{p}", where) for p, v in files.items()},
        target=targets(data.get("target", []), where),
        fail_on=fail_on,
        baseline=baseline,
        preview=preview,
        root=path.parent if path else None,
        path=path,
    )


def override(settings: Settings, assignments: Sequence[str]) -> Settings:
    """``settings`` with ``key = value`` assignments (TOML) on top. Raises TrainwreckError."""
    for text in assignments:
        import tomllib

        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise TrainwreckError(
                f"--config {text!r}: is no TOML assignment ({problem}); write 'key = value'"
            ) from problem
        parsed = parse(table)
        changed = {key.replace("-", "_"): getattr(parsed, key.replace("-", "_")) for key in table}
        settings = replace(settings, **changed)
    return settings


def targets(value: Any, where: str = "--target") -> dict[str, str]:
    """``["transformers==4.46", …]`` or a table as versions by package; ``env`` and ``env:PATH`` stand for all that is
    installed there. Single releases win over an environment. Raises TrainwreckError for another shape."""
    if isinstance(value, dict):
        return {str(k).lower().replace("_", "-"): str(v) for k, v in value.items()}
    found: dict[str, str] = {}
    for item in _strings(value, "target", where):
        if item == "env" or item.startswith("env:"):
            from trainwreck.checking.environment import installed

            found = {**installed(item[4:].strip()), **found}
            continue
        name, separator, version = item.partition("==")
        if not separator or not version.strip():
            raise TrainwreckError(f"{where}: a target is written name==version, env or env:PATH, not {item!r}")
        found[name.strip().lower().replace("_", "-")] = version.strip()
    return found


def _strings(value: Any, key: str, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise TrainwreckError(f"{where}: {key} must be a list of strings")


def _toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise TrainwreckError(f"{path}: is no readable TOML ({problem}); correct it or use --isolated") from problem
