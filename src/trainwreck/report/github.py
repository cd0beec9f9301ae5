"""Workflow commands of GitHub Actions: annotations on the lines of a pull request."""

from __future__ import annotations

from typing import Any

from trainwreck.core.results import Result
from trainwreck.report.safe import line

LEVELS = {"critical": "error", "warning": "warning", "suggestion": "notice"}


def render(result: Result, form: str = "github", **_: Any) -> str:
    """One command a finding; nothing where nothing was found."""
    rows = []
    for item in result.findings:
        title, path = f"trainwreck ({item.id})", line(item.path, 1000)
        parts: dict[str, str | int] = {"title": title, "file": path, "line": item.line, "col": item.column}
        if item.end_line and item.end_line > item.line:
            parts["endLine"] = item.end_line
        elif item.end_column and item.end_column > item.column:
            parts |= {"endLine": item.line, "endColumn": item.end_column}
        if item.cell is not None:
            # The lines are those of a cell; an annotation can only stand on the file.
            parts = {"title": title, "file": path, "line": 1}
        properties = ",".join(f"{key}={_property(str(value))}" for key, value in parts.items())
        at = f"cell {item.cell}, line {item.line}: " if item.cell is not None else ""
        rows.append(f"::{LEVELS[item.severity]} {properties}::{_data(at + line(item.message, 1000))}")
    return "".join(f"{row}\n" for row in rows)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
