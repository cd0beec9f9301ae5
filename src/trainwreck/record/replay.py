"""``trainwreck replay CAPTURE``: run the script of a capture again up to the failing step, and say what was born where.

The user asks for the script to run, so it runs; it is ended at the captured place, before it can go on training.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainwreck.core.errors import TrainwreckError
from trainwreck.record.launch import BOOTSTRAP

MAX_BYTES = 16 << 20
"""Size of an answer or of a capture's facts; a larger file is none of ours."""


def replay(capture: Path, device: str | None = None) -> dict[str, Any]:
    """The origin that the replay of ``capture`` finds, as ``record/inside/describe.py`` lays it out.

    ``device``: ``cpu`` hides all devices from the script. Raises TrainwreckError if there is no capture, or if the
    script ends before it comes to the captured place.
    """
    facts = _facts(capture)
    command = _command(facts)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as folder:
        answer = Path(folder) / "answer.json"
        options = {"again": str(capture.absolute()), "answer": str(answer), "quiet": True}
        environment = dict(os.environ)
        before = environment.get("PYTHONPATH", "")
        environment |= {
            "TRAINWRECK_RECORD": folder,
            "TRAINWRECK_OPTIONS": json.dumps(options),
            "TRAINWRECK_PYTHONPATH": before,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(BOOTSTRAP), before])),
        }
        if device == "cpu":
            environment |= {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ZE_AFFINITY_MASK": "none"}
        where = facts.get("cwd")
        code = subprocess.run(
            [sys.executable, *command],
            env=environment,
            cwd=where if isinstance(where, str) and Path(where).is_dir() else None,
            stdout=sys.stderr.fileno(),
            check=False,
        ).returncode
        if not answer.is_file():
            place = f"{facts.get('path')}:{facts.get('line')}"
            raise TrainwreckError(f"{capture}: the script ended (exit code {code}) before it came to {place}")
        return _json(answer)


def captures(paths: Iterable[Path]) -> list[Path]:
    """The captures that ``paths`` name: themselves, and those of failing steps in a recording, in order of steps."""
    found: list[Path] = []
    for path in paths:
        below = [p for p in path.glob("capture-*") if (p / "capture.json").is_file() and "crash" not in p.name]
        found += sorted(below, key=lambda p: (len(p.name), p.name)) or [path]
    return list(dict.fromkeys(found))


def together(origins: Sequence[Mapping[str, Any]]) -> str:
    """One sentence on several origins: how many were born at one place."""
    places = Counter(_birth(o) for o in origins if o.get("kind") not in (None, "unknown"))
    if not places:
        return f"{len(origins)} replays, none of which found an origin"
    parts = [f"{count} in {place}" for place, count in places.most_common(4)]
    return f"{len(origins)} replays: {', '.join(parts)}"


def _birth(origin: Mapping[str, Any]) -> str:
    data = origin.get("data")
    held = data[0].get("name") if isinstance(data, list) and data and isinstance(data[0], dict) else None
    name = origin.get("call") or origin.get("op") or held or origin.get("kind")
    return f"{name} at {origin['path']}:{origin.get('line')}" if origin.get("path") else str(name)


def _facts(capture: Path) -> dict[str, Any]:
    path = capture / "capture.json" if capture.is_dir() else capture
    if not path.is_file():
        below = sorted(capture.glob("capture-*")) if capture.is_dir() else []
        hint = f"; did you mean {below[0]}?" if below else ""
        raise TrainwreckError(f"{capture}: no capture (capture.json is missing){hint}")
    facts = _json(path)
    if "trainwreck_capture" not in facts:
        raise TrainwreckError(f"{path}: no capture of ours")
    return facts


def _json(path: Path) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError) as problem:
        raise TrainwreckError(f"{path}: can't be read ({problem})") from None
    if not isinstance(found, dict):
        raise TrainwreckError(f"{path}: holds no object")
    return found


def _command(facts: dict[str, Any]) -> list[str]:
    """The words that started the program, as the capture tells them."""
    argv = [str(word) for word in facts.get("argv") or []]
    script = facts.get("script") or {}
    if isinstance(script.get("module"), str):
        return ["-m", script["module"], *argv[1:]]
    if not argv or not argv[0]:
        raise TrainwreckError("the capture does not say which script it comes from (a notebook?); replay needs one")
    file = script.get("file")
    return [file if isinstance(file, str) and Path(file).is_absolute() else argv[0], *argv[1:]]


def lines(origin: dict[str, Any]) -> list[str]:
    """An origin for a terminal: the sentence, then what went in."""
    out = [f"step {origin.get('step')}: {origin.get('text', 'nothing was found')}"]
    for fact in origin.get("inputs") or []:
        if "shape" in fact:
            shape = "x".join(str(n) for n in fact["shape"]) or "scalar"
            span = f"{_number(fact.get('min'))}..{_number(fact.get('max'))}"
            extra = "".join(f", {fact[k]} {k}" for k in ("zeros", "nan", "inf") if fact.get(k))
            out.append(f"  {fact.get('name')}: {shape} {fact.get('dtype')}, {span}{extra}")
        elif "value" in fact:
            out.append(f"  {fact.get('name')}: {fact['value']}")
    for fact in origin.get("data") or []:
        out.append(f"  {fact.get('name')}: rows {fact.get('rows')}, columns {fact.get('columns', 'all')}")
    out += [f"  {frame['path']}:{frame['line']} in {frame['function']}" for frame in origin.get("frames") or []]
    out += [f"  note: {note}" for note in origin.get("notes") or []]
    return out


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)
