"""Apply fixes: whole lines are replaced, the rest stays byte for byte, and what would not parse is not done."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from trainwreck.checking import notebooks
from trainwreck.checking.documents import rows
from trainwreck.code.notebook import as_python
from trainwreck.core.results import Edit, Finding
from trainwreck.core.row import Row

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Fixed(Row):
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
    taken: dict[tuple[str, int | None], list[range]] = {}
    accepted: list[Edit] = []
    for group in by_first_path.values():
        for finding in group:
            assert finding.fix is not None
            if any(_meets(edit, taken) or edit.path not in texts for edit in finding.fix.edits):
                refused.append(finding)
                continue
            touched = {e.path for e in finding.fix.edits}
            trial = _write(texts, [*(e for e in accepted if e.path in touched), *finding.fix.edits])
            cells = {e.cell for e in finding.fix.edits if e.cell is not None}
            if trial is not None and all(_parses(path, trial[path], cells) for path in touched):
                for edit in finding.fix.edits:
                    taken.setdefault((edit.path, edit.cell), []).append(range(edit.line, edit.end_line + 1))
                accepted += finding.fix.edits
                fixed.append(finding)
            else:
                refused.append(finding)
    new.update(_write(texts, accepted) or {})
    return Fixed({p: t for p, t in new.items() if t != texts[p]}, fixed, refused)


def diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """A unified diff of what ``after`` changes."""
    import difflib

    parts: list[str] = []
    for path, text in sorted(after.items()):
        # Only a line feed ends a line here, as for patch and git: other line ends stay within the lines.
        old, new = (_LINE.findall(text) for text in (before[path], text))
        parts += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in parts)


def _meets(edit: Edit, taken: Mapping[tuple[str, int | None], Sequence[range]]) -> bool:
    mine = range(edit.line, edit.end_line + 1)
    return any(mine.start < other.stop and other.start < mine.stop for other in taken.get((edit.path, edit.cell), ()))


def _write(texts: Mapping[str, str], edits: Sequence[Edit]) -> dict[str, str] | None:
    """The edited texts by path, None where a notebook can't be written without changing the rest of it."""
    result: dict[str, str] = {}
    for path in dict.fromkeys(e.path for e in edits):
        mine = [e for e in edits if e.path == path]
        if any(e.cell is not None for e in mine):
            every = notebooks.cells(texts[path])
            cells = {e.cell for e in mine if e.cell is not None and e.cell <= len(every)}
            new = {n: _edited(every[n - 1], [e for e in mine if e.cell == n]) for n in cells}
            written = notebooks.replaced(texts[path], new)
            if written is None:
                return None
            result[path] = written
        else:
            result[path] = _edited(texts[path], mine)
    return result


def _edited(text: str, edits: Sequence[Edit]) -> str:
    """``text`` with these edits; new lines end as those that they replace do."""
    lines = rows(text)
    for edit in sorted(edits, key=lambda e: -e.line):
        last = lines[edit.end_line - 1] if edit.end_line <= len(lines) else "\n"
        own = last[len(last.rstrip("\r\n")) :]
        end = own or _line_end(lines)
        body = edit.text.replace("\r\n", "\n").replace("\n", end)
        if body and own and not body.endswith(end):
            body += end
        lines[edit.line - 1 : edit.end_line] = [body] if body else []
    return "".join(lines)


def _line_end(lines: Sequence[str]) -> str:
    """How lines end here; the last one of a file may have no end."""
    first = lines[0] if lines else ""
    return first[len(first.rstrip("\r\n")) :] or "\n"


def _parses(path: str, text: str, cells: Collection[int] = ()) -> bool:
    """True if the language accepts the text; of a notebook only ``cells``, for another may have been broken before."""
    try:
        if path.endswith((".py", ".pyw")):
            ast.parse(text)
        elif path.endswith(".ipynb"):
            for number, cell in enumerate(notebooks.cells(text), 1):
                if number in cells:
                    ast.parse(as_python(cell))
        elif path.endswith(".json"):
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
