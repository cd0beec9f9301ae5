"""Apply fixes: whole lines are replaced, the rest stays byte for byte, and what would not parse is not done."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainwreck.core.results import Edit, Finding


@dataclass(frozen=True)
class Fixed:
    """New texts by path, the findings that were fixed, and those whose edits met another's or broke the file."""

    texts: Mapping[str, str]
    fixed: Sequence[Finding]
    refused: Sequence[Finding]


def apply(findings: Iterable[Finding], texts: Mapping[str, str], *, unsafe: bool = False) -> Fixed:
    """Apply the safe fixes of ``findings`` (all with ``unsafe``) to ``texts``.

    The edits of one finding go in together or not at all.
    """
    new = dict(texts)
    fixed: list[Finding] = []
    refused: list[Finding] = []
    by_first_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.fix and finding.fix.edits and (finding.fix.safe or unsafe):
            by_first_path.setdefault(finding.path, []).append(finding)
    taken: dict[str, list[range]] = {}
    accepted: list[Edit] = []
    for group in by_first_path.values():
        for finding in group:
            assert finding.fix is not None
            if any(_meets(edit, taken) or edit.path not in texts for edit in finding.fix.edits):
                refused.append(finding)
                continue
            trial = _write(texts, [*accepted, *finding.fix.edits])
            if all(_parses(path, trial[path]) for path in {e.path for e in finding.fix.edits}):
                for edit in finding.fix.edits:
                    taken.setdefault(edit.path, []).append(range(edit.line, edit.end_line + 1))
                accepted += finding.fix.edits
                fixed.append(finding)
            else:
                refused.append(finding)
    new.update(_write(texts, accepted))
    return Fixed({p: t for p, t in new.items() if t != texts[p]}, fixed, refused)


def diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """A unified diff of what ``after`` changes."""
    parts: list[str] = []
    for path, text in sorted(after.items()):
        old = before[path].splitlines(keepends=True)
        parts += difflib.unified_diff(old, text.splitlines(keepends=True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in parts)


def _meets(edit: Edit, taken: Mapping[str, Sequence[range]]) -> bool:
    mine = range(edit.line, edit.end_line + 1)
    return any(mine.start < other.stop and other.start < mine.stop for other in taken.get(edit.path, ()))


def _write(texts: Mapping[str, str], edits: Sequence[Edit]) -> dict[str, str]:
    result = {}
    for path in {e.path for e in edits}:
        lines = texts[path].splitlines(keepends=True)
        end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
        for edit in sorted((e for e in edits if e.path == path), key=lambda e: -e.line):
            body = edit.text.replace("\r\n", "\n").replace("\n", end)
            last = lines[edit.end_line - 1] if edit.end_line <= len(lines) else end
            if body and not body.endswith(end) and last.endswith(("\n", "\r")):
                body += end
            lines[edit.line - 1 : edit.end_line] = [body] if body else []
        result[path] = "".join(lines)
    return result


def _parses(path: str, text: str) -> bool:
    try:
        if path.endswith(".py"):
            ast.parse(text)
        elif path.endswith((".json", ".ipynb")):
            import json

            json.loads(text)
        elif path.endswith((".yaml", ".yml")):
            import yaml

            yaml.safe_load(text)
        elif path.endswith(".toml"):
            import tomllib

            tomllib.loads(text)
    except Exception:  # whatever a parser raises: the fix is refused
        return False
    return True
