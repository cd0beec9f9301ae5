"""``# trainwreck: ignore[id] reason``: what a file's own comments silence, and which comments silence nothing.

A comment at the end of a line holds for the statement on that line; one on a line of its own for the next statement;
``file-ignore`` for the whole file. A comment without ids is refused and told, as is one that silences nothing.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from trainwreck.core.results import Finding

UNUSED = "unused-ignore"
BLANKET = "blanket-ignore"
_COMMENT = re.compile(r"#\s*trainwreck:\s*(?P<kind>file-ignore|ignore)(?:\[(?P<ids>[^\]]*)\])?(?P<reason>.*)")


@dataclass
class Comment:
    """One suppression comment: the lines that it covers (None: the whole file) and the ids that it names."""

    line: int
    column: int
    ids: Sequence[str]
    covers: range | None
    used: set[str] = field(default_factory=set)

    def silences(self, finding: Finding) -> bool:
        if finding.id not in self.ids and finding.sign not in self.ids:
            return False
        return self.covers is None or finding.line in self.covers


def comments(path: str, text: str) -> list[Comment]:
    """The suppression comments of one file, in order. What is no Python is searched line by line."""
    if "trainwreck:" not in text:
        return []
    lines = text.splitlines()
    found = _python(text) if path.endswith((".py", ".pyi", ".ipynb")) else None
    places = found if found is not None else _plain(lines)
    return [_comment(match, line, column, lines) for line, column, match in places]


def _python(text: str) -> list[tuple[int, int, re.Match[str]]] | None:
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
                found.append((token.start[0], token.start[1] + 1, match))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    return found


def _plain(lines: Sequence[str]) -> list[tuple[int, int, re.Match[str]]]:
    return [(n, m.start() + 1, m) for n, text in enumerate(lines, 1) if (m := _COMMENT.search(text))]


def _comment(match: re.Match[str], line: int, column: int, lines: Sequence[str]) -> Comment:
    ids = tuple(i.strip() for i in (match["ids"] or "").split(",") if i.strip())
    if match["kind"] == "file-ignore":
        return Comment(line, column, ids, None)
    own_line = not lines[line - 1][: column - 1].strip()
    first = line
    if own_line:
        rest = range(line + 1, len(lines) + 1)
        first = next((n for n in rest if lines[n - 1].strip() and not lines[n - 1].lstrip().startswith("#")), line)
    return Comment(line, column, ids, range(first, _statement_end(first, lines) + 1))


def _statement_end(first: int, lines: Sequence[str]) -> int:
    """The last line of the bracketed expression that starts on ``first``; brackets in strings do little harm here."""
    depth = 0
    for number in range(first, min(first + 60, len(lines)) + 1):
        code = re.sub(r"(\"[^\"]*\"|'[^']*'|#.*)", "", lines[number - 1])
        depth += sum(code.count(c) for c in "([{") - sum(code.count(c) for c in ")]}")
        if depth <= 0:
            return number
    return first


def apply(findings: Iterable[Finding], texts: dict[str, str]) -> tuple[list[Finding], list[Finding]]:
    """The findings that stay, with those about useless comments added, and the ones that were silenced."""
    by_path = {path: comments(path, text) for path, text in texts.items()}
    kept, silenced = [], []
    for finding in findings:
        hit = next((c for c in by_path.get(finding.path, ()) if c.silences(finding)), None)
        if hit is None:
            kept.append(finding)
        else:
            hit.used.add(finding.id if finding.id in hit.ids else finding.sign)
            silenced.append(finding)
    for path, found in sorted(by_path.items()):
        kept += _complaints(path, found)
    return kept, silenced


def _complaints(path: str, found: Sequence[Comment]) -> Iterator[Finding]:
    for comment in found:
        if not comment.ids:
            text = "an ignore comment must name ids: `# trainwreck: ignore[id] reason`"
            yield Finding(BLANKET, BLANKET, "suggestion", text, path, comment.line, comment.column)
        for name in comment.ids:
            if name not in comment.used:
                text = f"nothing to ignore here: {name} does not occur"
                yield Finding(UNUSED, UNUSED, "suggestion", text, path, comment.line, comment.column)


def add(findings: Iterable[Finding], texts: dict[str, str], reason: str = "") -> dict[str, str]:
    """New texts with an ignore comment at the end of the line of each finding. Lines that already have one gain the id.

    A line that ends inside a string or with a backslash can't take a comment and is left alone.
    """
    wanted: dict[str, dict[int, list[str]]] = {}
    for finding in findings:
        ids = wanted.setdefault(finding.path, {}).setdefault(finding.line, [])
        if finding.id not in ids:
            ids.append(finding.id)
    changed = {}
    for path, places in wanted.items():
        if path not in texts or path.endswith((".ipynb", ".json")):
            continue
        lines = texts[path].splitlines(keepends=True)
        for number, ids in places.items():
            if 0 < number <= len(lines):
                lines[number - 1] = _with_comment(lines[number - 1], ids, reason)
        text = "".join(lines)
        if not path.endswith(".py") or _same_program(texts[path], text):
            changed[path] = text
    return {path: text for path, text in changed.items() if text != texts[path]}


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

    try:
        return ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError):
        return False
