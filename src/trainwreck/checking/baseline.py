"""A baseline: the findings that a project has today, so that only new ones are told.

A finding is recognised by its id, its path from the baseline's directory and the text of its line, not by the line's
number: moving code around changes nothing, editing the line makes the finding new.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainwreck.checking import documents
from trainwreck.core.errors import TrainwreckError
from trainwreck.core.results import Finding


def fingerprint(finding: Finding, texts: Mapping[str, str], root: Path | None = None) -> str:
    """A stable name of the finding, 16 hexadecimal digits (also the SARIF fingerprint).

    ``root``: the directory that paths count from, so that it doesn't matter where the command was started; files
    elsewhere keep the name that they were given.
    """
    text = " ".join(documents.line(texts, finding.path, finding.line, finding.cell).split())
    name = f"{finding.id}\0{_from(root, finding.path)}\0{text}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _from(root: Path | None, path: str) -> str:
    if root is None:
        return path
    try:
        below = os.path.relpath(path, root).replace(os.sep, "/")
    except ValueError:  # another drive
        return path
    return path if below.startswith("../") else below


def write(path: Path, findings: Iterable[Finding], texts: Mapping[str, str]) -> int:
    """Write the baseline; the number of findings in it. Raises TrainwreckError if it can't be written."""
    counts = Counter(fingerprint(f, texts, path.parent) for f in findings)
    try:
        path.write_text(
            json.dumps({"version": 1, "findings": dict(sorted(counts.items()))}, indent=1) + "\n", encoding="utf-8"
        )
    except OSError as problem:
        raise TrainwreckError(f"{path}: cannot be written ({problem.strerror}); name another file") from problem
    return sum(counts.values())


def subtract(path: Path, findings: Iterable[Finding], texts: Mapping[str, str]) -> list[Finding]:
    """The findings that the baseline does not know. Raises TrainwreckError if the file is missing or damaged."""
    try:
        counts = Counter({str(k): int(v) for k, v in json.loads(path.read_bytes())["findings"].items()})
    except OSError as problem:
        raise TrainwreckError(
            f"{path}: cannot be read ({problem.strerror}); make it with --write-baseline"
        ) from problem
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise TrainwreckError(f"{path}: is no baseline of trainwreck; make it anew with --write-baseline") from problem
    fresh = []
    for finding in findings:
        name = fingerprint(finding, texts, path.parent)
        if counts[name] > 0:
            counts[name] -= 1
        else:
            fresh.append(finding)
    return fresh
