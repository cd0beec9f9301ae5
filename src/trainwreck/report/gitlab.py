"""GitLab's code quality report: an array of issues, each with a fingerprint that no other has."""

from __future__ import annotations

import hashlib
from typing import Any

from trainwreck.core.results import Result
from trainwreck.report.json import dumps
from trainwreck.report.safe import line

SEVERITIES = {"critical": "critical", "warning": "major", "suggestion": "info"}


def render(result: Result, form: str = "gitlab", **_: Any) -> str:
    """The array; ``[]`` where nothing was found."""
    issues = []
    seen: dict[str, int] = {}
    for item in result.findings:
        name = item.fingerprint or f"{item.id}\0{item.path}\0{item.line}"
        seen[name] = seen.get(name, 0) + 1
        begin = {"line": item.line, "column": item.column}
        end = {"line": item.end_line or item.line, "column": item.end_column or item.column}
        at = ""
        if item.cell is not None:  # the lines are those of a cell; an issue can only stand on the file
            begin = end = {"line": 1, "column": 1}
            at = f"cell {item.cell}, line {item.line}: "
        issues.append(
            {
                "check_name": item.id,
                "description": at + line(item.message, 1000),
                "severity": SEVERITIES[item.severity],
                "fingerprint": hashlib.sha256(f"{name}\0{seen[name]}".encode("utf-8", "replace")).hexdigest()[:32],
                "location": {
                    "path": item.path,
                    "positions": {"begin": begin, "end": end},
                },
            }
        )
    return dumps(issues, indent=True) + "\n"
