"""``# trainwreck: ignore[id] reason``: what a file's own comments silence, and which comments silence nothing.

A comment at the end of a line holds for the statement on that line; one on a line of its own for the next statement;
``file-ignore`` for the whole file (of a notebook: for all its cells). A comment without ids is refused and told, as is
one that silences nothing.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainwreck.checking import notebooks
from trainwreck.checking.documents import lines as lines_of
from trainwreck.checking.documents import rows
from trainwreck.core.fix import Edit, Fix
from trainwreck.core.results import Finding

UNUSED = "unused-ignore"
BLANKET = "blanket-ignore"
NEVER = frozenset([UNUSED, BLANKET, "unreadable"])
"""Findings that no comment is written for."""
_COMMENT = re.compile(r"#\s*trainwreck:\s*(?P<kind>file-ignore|ignore)\b(?:\[(?P<ids>[^\]]*)\])?(?P<reason>.*)")


@dataclass
class Comment:
    """One suppression comment: the lines that it covers (None: the whole file) and the ids that it names.

    ``used``: those of ``ids`` that silence something.
    """

    line: int
    column: int
    ids: Sequence[str]
    covers: range | None
    cell: int | None = None
    used: set[str] = field(default_factory=set)

    def silences(self, finding: Finding, aliases: Mapping[str, str]) -> bool:
        """True if it does; the ids that are meant count as used from then on."""
        mine = {name for name in self.ids if {name, aliases.get(name)} & {finding.id, finding.sign}}
        if not mine or not self._covers(finding):
            return False
        self.used |= mine
        return True

    def _covers(self, finding: Finding) -> bool:
        if self.covers is None:
            return True
        last = max(finding.end_line or finding.line, finding.line)
        own = range(finding.line, last + 1)
        return self.cell == finding.cell and own.start < self.covers.stop and self.covers.start < own.stop


def comments(path: str, text: str) -> list[Comment]:
    """The suppression comments of one file, in order. What is no Python is searched line by line."""
    if "trainwreck:" not in text:
        return []
    if path.endswith(".ipynb"):
        cells = enumerate(notebooks.cells(text), 1)
        return [c for number, cell in cells for c in _comments(cell, True, number)]
    return _comments(text, path.endswith((".py", ".pyw", ".pyi")), None)


def _comments(text: str, python: bool, cell: int | None) -> list[Comment]:
    if "trainwreck:" not in text:
        return []
    lines = [row.rstrip("\r\n") for row in rows(text)]
    found = _python(text) if python else None
    places = found if found is not None else _plain(lines)
    return [_comment(match, line, column, lines, cell) for line, column, match in places]


def _python(text: str) -> list[tuple[int, int, re.Match[str]]] | None:
    found = []
    plain = text.replace("\r\n", "\n").replace("\r", "\n")  # the tokenizer knows no other line end
    try:
        for token in tokenize.generate_tokens(io.StringIO(plain).readline):
            if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
                found.append((token.start[0], token.start[1] + 1, match))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    return found


def _plain(lines: Sequence[str]) -> list[tuple[int, int, re.Match[str]]]:
    return [(n, m.start() + 1, m) for n, text in enumerate(lines, 1) if (m := _COMMENT.search(text))]


def _comment(match: re.Match[str], line: int, column: int, lines: Sequence[str], cell: int | None) -> Comment:
    ids = tuple(i.strip() for i in (match["ids"] or "").split(",") if i.strip())
    if match["kind"] == "file-ignore":
        return Comment(line, column, ids, None, cell)
    own_line = not lines[line - 1][: column - 1].strip() if line <= len(lines) else True
    first = line
    if own_line:
        rest = range(line + 1, len(lines) + 1)
        first = next((n for n in rest if lines[n - 1].strip() and not lines[n - 1].lstrip().startswith("#")), line)
    return Comment(line, column, ids, range(first, _statement_end(first, lines) + 1), cell)


def _statement_end(first: int, lines: Sequence[str]) -> int:
    """The last line of the bracketed expression that starts on ``first``; brackets in strings do little harm here."""
    depth = 0
    for number in range(first, min(first + 60, len(lines)) + 1):
        code = re.sub(r"(\"[^\"]*\"|'[^']*'|#.*)", "", lines[number - 1])
        depth += sum(code.count(c) for c in "([{") - sum(code.count(c) for c in ")]}")
        if depth <= 0:
            return number
    return first


def apply(
    findings: Iterable[Finding],
    texts: Mapping[str, str],
    every: Iterable[Finding] = (),
    meant: Callable[[str], str | None] = lambda _: None,
    aliases: Mapping[str, str] | None = None,
) -> tuple[list[Finding], list[Finding]]:
    """The findings that stay, with those about useless comments added, and the ones that were silenced.

    ``every``: findings that were not selected this time; a comment about one of them is not useless. ``meant`` gives
    the id that a misspelt one is nearest to (empty: none is near), None for one that exists. ``aliases``: other names.
    """
    other = aliases or {}
    by_path = {path: comments(path, text) for path, text in texts.items()}
    for finding in every:
        for comment in by_path.get(finding.path, ()):
            comment.silences(finding, other)
    kept: list[Finding] = []
    silenced: list[Finding] = []
    for finding in findings:
        hit = any(c.silences(finding, other) for c in by_path.get(finding.path, ()))
        (silenced if hit else kept).append(finding)
    for path, found in sorted(by_path.items()):
        kept += _complaints(path, found, texts, meant)
    return kept, silenced


def _complaints(
    path: str, found: Sequence[Comment], texts: Mapping[str, str], meant: Callable[[str], str | None]
) -> Iterator[Finding]:
    for comment in found:
        if not comment.ids:
            text = "an ignore comment must name ids: `# trainwreck: ignore[id] reason`"
            yield Finding(BLANKET, BLANKET, "suggestion", text, path, comment.line, comment.column, cell=comment.cell)
        useless = [name for name in comment.ids if name not in comment.used]
        for name in useless:
            near = meant(name)
            text = f"nothing to ignore here: {name} does not occur"
            if near is not None:
                text = f"no such id: {name}" + (f"; did you mean {near}?" if near else "")
            yield Finding(
                UNUSED,
                UNUSED,
                "suggestion",
                text,
                path,
                comment.line,
                comment.column,
                # A misspelt id is somebody's intention: it is corrected by hand, not taken away.
                fix=None if near else _without(comment, [n for n in useless if not meant(n)], path, texts),
                cell=comment.cell,
            )


def _without(comment: Comment, useless: Sequence[str], path: str, texts: Mapping[str, str]) -> Fix | None:
    """The line without the ids that silence nothing, and without the comment where none is left."""
    lines = lines_of(texts, path, comment.cell)
    if not 0 < comment.line <= len(lines):
        return None
    text = lines[comment.line - 1]
    match = _COMMENT.search(text, comment.column - 1)
    if match is None:
        return None
    left = [name for name in comment.ids if name not in useless]
    before = text[: match.start()]
    if left:
        changed = f"{before}# trainwreck: {match['kind']}[{', '.join(left)}]{match['reason']}"
    else:
        changed = before.rstrip()
    return Fix("Remove what silences nothing", (Edit(path, comment.line, comment.line, changed, comment.cell),), True)


def add(findings: Iterable[Finding], texts: Mapping[str, str], reason: str = "") -> dict[str, str]:
    """New texts with an ignore comment at the end of the line of each finding. Lines that already have one gain the id.

    A line that ends inside a string or with a backslash can't take a comment and is left alone, as is JSON, which has
    no comments.
    """
    wanted: dict[tuple[str, int | None], dict[int, list[str]]] = {}
    for finding in findings:
        if finding.id not in NEVER:
            ids = wanted.setdefault((finding.path, finding.cell), {}).setdefault(finding.line, [])
            ids += [finding.id] if finding.id not in ids else []
    changed = dict(texts)
    for (path, cell), places in wanted.items():
        if path not in texts or path.endswith(".json"):
            continue
        old = changed[path]
        if cell is None:
            changed[path] = _commented(old, places, reason, python=path.endswith((".py", ".pyw")))
        elif cell <= len(every := notebooks.cells(old)):
            new = _commented(every[cell - 1], places, reason, python=True)
            changed[path] = notebooks.replaced(old, {cell: new}) or old
    return {path: text for path, text in changed.items() if text != texts[path]}


def _commented(text: str, places: Mapping[int, Sequence[str]], reason: str, *, python: bool) -> str:
    """``text`` with the comments; a comment that would change the program is not written."""
    parts = rows(text)
    for number, ids in sorted(places.items()):
        if 0 < number <= len(parts):
            before = parts[number - 1]
            parts[number - 1] = _with_comment(before, ids, reason)
            if python and not _same_program(text, "".join(parts)):
                parts[number - 1] = before
    return "".join(parts)


def _with_comment(line: str, ids: Sequence[str], reason: str) -> str:
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    match = _COMMENT.search(body)
    if match and match["kind"] == "ignore":
        have = [i.strip() for i in (match["ids"] or "").split(",") if i.strip()]
        merged = ", ".join([*have, *(i for i in ids if i not in have)])
        return f"{body[: match.start()]}# trainwreck: ignore[{merged}]{match['reason']}{end}"
    if body.endswith("\\"):
        return line
    return f"{body}  # trainwreck: ignore[{', '.join(ids)}]{' ' + reason if reason else ''}{end}"


def _same_program(before: str, after: str) -> bool:
    import ast

    from trainwreck.code.notebook import as_python

    try:
        old, new = (ast.dump(ast.parse(as_python(text))) for text in (before, after))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return old == new
