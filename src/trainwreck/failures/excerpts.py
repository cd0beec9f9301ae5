"""A few lines around the places that the first causes rest on, for the reports."""

from __future__ import annotations

from collections.abc import Sequence

from trainwreck.core.program import Program
from trainwreck.core.results import Cause, Excerpt
from trainwreck.core.source import Source

AROUND = 3
MAX_EXCERPTS = 4
MAX_SCAN_BYTES = 64 << 20
"""A log beyond this is not gone through again for an excerpt."""


def excerpts(sources: Sequence[Source], program: Program, causes: Sequence[Cause]) -> list[Excerpt]:
    """At most MAX_EXCERPTS: the place to fix and the first places of evidence of the causes that count."""
    wanted: dict[str, dict[int, str]] = {}
    for cause in causes[:3]:
        if cause.location is not None and cause.location.line:
            wanted.setdefault(cause.location.path, {}).setdefault(cause.location.line, cause.title)
        for item in cause.evidence[:2]:
            if item.where.path and item.where.line:
                wanted.setdefault(item.where.path, {}).setdefault(item.where.line, item.text)
    found: list[Excerpt] = []
    by_name = {source.name: source for source in sources}
    for path, marks in wanted.items():
        module = program.modules.get(path)
        for group in _groups(sorted(marks)):
            if len(found) >= MAX_EXCERPTS:
                return found
            first, last = max(1, group[0] - AROUND), group[-1] + AROUND
            if module is not None:
                lines = list(module.lines[first - 1 : last])
            else:
                lines = _from_source(by_name.get(path), first, last)
            if lines:
                found.append(Excerpt(path, first, lines, tuple(group), marks[group[0]]))
    return found


def _groups(lines: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for line in lines:
        if groups and line - groups[-1][-1] <= 2 * AROUND:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _from_source(source: Source | None, first: int, last: int) -> list[str]:
    if source is None or source.is_binary or (source.size or 0) > MAX_SCAN_BYTES:
        return []
    lines: dict[int, str] = {}
    try:
        for line in source.lines():
            if line.number > last:
                break
            # A progress bar rewrites its line again and again: of what stood there the fullest is shown.
            if line.number >= first and len(line.text.rstrip()) >= len(lines.get(line.number, "")):
                lines[line.number] = line.text.rstrip()
    except (OSError, EOFError, ValueError):
        pass
    return [lines.get(number, "")[:400] for number in range(first, max(lines, default=first - 1) + 1)]
