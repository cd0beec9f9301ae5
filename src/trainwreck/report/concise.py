"""One line per cause and finding, in the form that editors and problem matchers read:
``path:line:column: id severity confidence message``."""

from __future__ import annotations

from typing import Any

from trainwreck.core.results import Cause, Finding, Result
from trainwreck.report import listing, words
from trainwreck.report.safe import line


def render(result: Result, form: str = "concise", **_: Any) -> str:
    """Causes in their order, then findings. One sentence where there is neither, so that silence is no riddle.

    An answer of ``check`` is its findings alone, and nothing where there are none: editors and pipes read it.
    """
    if result.verb == "check":
        return "".join(
            f"{listing.place(f)}: {f.id}{listing.fixable(f)} {f.severity}: {line(f.message, 400)}\n"
            for f in result.findings
        )
    rows = [_cause(cause, result) for cause in result.root_causes if cause.role != "consequence"]
    told = {c.id for c in result.root_causes}
    rows += [
        f"{line(f.path, 300)}:{f.line}:{f.column}: {f.id} {f.severity} - {line(f.message, 400)}"
        for f in result.findings
        if f.id not in told
    ]
    if not rows:
        sentence, seen = words.headline(result), words.looked_at(result)
        files = words.plural(len(result.read), "file")
        rows.append(f"trainwreck: {sentence[0].lower()}{sentence[1:]} ({files}{': ' + seen if seen else ''})")
    return "\n".join(rows) + "\n"


def _finding(item: Finding) -> str:
    return f"{listing.place(item)}: {item.id}{listing.fixable(item)} {item.severity}: {line(item.message, 400)}"


def _cause(cause: Cause, result: Result) -> str:
    where = next((e.where for e in cause.evidence if e.where.path), None)
    path, number, column = "-", 1, 1
    if cause.location is not None:
        path, number = cause.location.path, cause.location.line or 1
        same = next((e.where for e in cause.evidence if (e.where.path, e.where.line) == (path, number)), None)
        column = (same.column if same else None) or 1
    elif where is not None and where.path:
        path, number, column = where.path, where.line or 1, where.column or 1
    role = "" if cause.role == "root" else f" ({cause.role})"
    return (
        f"{line(path, 300)}:{number}:{column}: {cause.id} {cause.severity} {cause.confidence:.2f} "
        f"{line(cause.title, 300)}{role}"
    )
