"""The answer of ``check`` on a terminal: findings with their code, their proof and their fix, in the manner of ruff.

Written with plain escape codes: a linter runs at every save, and loading rich would be half of its time.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping

from trainwreck.core.results import Finding, Link, Result
from trainwreck.report import words
from trainwreck.report.safe import line, source_line, to_ascii

STYLES = {"critical": "1;31", "warning": "1;33", "suggestion": "1;36", "place": "36", "dim": "2", "bold": "1"}
SIGNS = {"-": "31", "+": "32"}
MAX_PROOF = 6
MAX_DIFF = 12
_SEE = re.compile(r" \(see [^()]*\)$")
_TRAILING = re.compile(r" +$", re.MULTILINE)

Lines = Mapping[tuple[str, int | None, int], str]


def render(result: Result, *, color: bool = False, unicode: bool = True, width: int = 100) -> str:
    """All findings, worst first, then the counts."""
    pen = _Pen(color, unicode, max(40, min(width, 160)))
    shown = lines_of(result)
    helped: set[str] = set()
    blocks = [list(_finding(f, result, shown, pen, helped)) for f in result.findings]
    rows = [row for block in blocks for row in (*block, "")]
    rows += [pen(text) for text in footer(result)]
    return _TRAILING.sub("", "\n".join(rows)) + "\n"


class _Pen:
    def __init__(self, color: bool, unicode: bool, width: int) -> None:
        self.color, self.unicode, self.width = color, unicode, width

    def __call__(self, text: str, style: str = "") -> str:
        text = text if self.unicode else to_ascii(text)
        return f"\x1b[{style}m{text}\x1b[0m" if self.color and style and text else text


def lines_of(result: Result) -> Lines:
    """The lines of code that the answer brings along, by path, cell and number."""
    return {
        (item.path, item.cell, number): text
        for item in result.excerpts
        for number, text in enumerate(item.lines, item.first_line)
    }


def place(finding: Finding) -> str:
    """``path:line:column``, which terminals and editors open; in a notebook the cell before the line, as ruff does."""
    cell = f"cell {finding.cell}:" if finding.cell is not None else ""
    return f"{line(finding.path, 300)}:{cell}{finding.line}:{finding.column}"


def link_place(link: Link) -> str:
    """``path:line`` of a line of a proof."""
    cell = f"cell {link.cell}:" if link.cell is not None else ""
    return f"{line(link.path, 300)}:{cell}{link.line}"


def message(finding: Finding) -> str:
    """The sentence without the places that follow as proof."""
    return line(_SEE.sub("", finding.message) if finding.proof else finding.message, 400)


def fixable(finding: Finding) -> str:
    """`` [*]`` where an edit is at hand that may be applied unasked."""
    return " [*]" if finding.fix and finding.fix.edits and finding.fix.safe else ""


def footer(result: Result) -> list[str]:
    """The counts, what can be fixed, and where to read on; one sentence where nothing was found."""
    found = [f for f in result.findings if f.sign != "unreadable"]
    seen = "" if result.observed or result.findings else "; none of them is about training"
    rows = [words.checked(result) + seen]
    safe = sum(bool(f.fix and f.fix.edits and f.fix.safe) for f in found)
    unsafe = sum(bool(f.fix and f.fix.edits and not f.fix.safe) for f in found)
    if safe:
        rows.append(f"[*] {safe} fixable with --fix" + (f", {unsafe} more with --unsafe-fixes" if unsafe else ""))
    elif unsafe:
        rows.append(f"{unsafe} fixable with --unsafe-fixes")
    if found:
        rows.append(f"more: trainwreck explain {found[0].id}")
    return rows


def _finding(finding: Finding, result: Result, shown: Lines, pen: _Pen, helped: set[str]) -> Iterable[str]:
    head = f"{pen(finding.severity, STYLES[finding.severity])} {pen(finding.id, STYLES['bold'])}{fixable(finding)}: "
    plain = len(f"{finding.severity} {finding.id}{fixable(finding)}: ")
    yield from _hung(head, plain, message(finding), pen)
    gutter = len(str(finding.line + 2))
    yield f"{' ' * gutter}{pen('-->', STYLES['dim'])} {pen(place(finding), STYLES['place'])}"
    yield from _excerpt(finding, shown, pen, gutter)
    told = [p for p in finding.links if (p.path, p.cell, p.line) != (finding.path, finding.cell, finding.line)]
    for link in told[:MAX_PROOF]:
        yield f"{pen('because', STYLES['dim'])} {pen(link_place(link), STYLES['place'])} {pen(line(link.text, 100))}"
    if len(told) > MAX_PROOF:
        yield pen(f"and {len(told) - MAX_PROOF} more places", STYLES["dim"])
    yield from _help(finding, result, shown, pen, helped)


def _help(finding: Finding, result: Result, shown: Lines, pen: _Pen, helped: set[str]) -> Iterable[str]:
    facts = result.rules.get(finding.id)
    text = finding.fix.text if finding.fix and finding.fix.text else facts.fix if facts else ""
    if text and (finding.fix or finding.id not in helped):
        yield from _hung(pen("help: ", STYLES["bold"]), 6, line(text, 600), pen)
    helped.add(finding.id)
    for edit in finding.fix.edits if finding.fix else ():
        old = [shown.get((edit.path, edit.cell, n)) for n in range(edit.line, edit.end_line + 1)]
        if edit.path != finding.path:
            yield pen(f"    {line(edit.path, 300)}:{edit.line}", STYLES["place"])
        for sign, rows in (("-", [t for t in old if t is not None]), ("+", edit.text.splitlines())):
            for row in rows[:MAX_DIFF]:
                yield pen(f"    {sign} {source_line(row, pen.width - 6)}", SIGNS[sign])


def _excerpt(finding: Finding, shown: Lines, pen: _Pen, gutter: int) -> Iterable[str]:
    """The line with its two neighbours and a caret span under it."""
    bar = pen("|", STYLES["dim"])
    around = [(n, shown.get((finding.path, finding.cell, n))) for n in range(finding.line - 1, finding.line + 2)]
    if shown.get((finding.path, finding.cell, finding.line)) is None:
        return
    yield f"{' ' * gutter} {bar}"
    for number, text in around:
        if text is None or (number != finding.line and not text.strip()):
            continue
        yield f"{pen(str(number).rjust(gutter), STYLES['dim'])} {bar} {pen(source_line(text, pen.width - gutter - 3))}"
        if number == finding.line:
            yield f"{' ' * gutter} {bar} {_carets(finding, text, pen, pen.width - gutter - 3)}"
    yield f"{' ' * gutter} {bar}"


def _carets(finding: Finding, text: str, pen: _Pen, room: int) -> str:
    first = max(finding.column - 1, 0)
    same = finding.end_line in (None, finding.line)
    last = finding.end_column - 1 if same and finding.end_column else len(text.rstrip()) if not same else first + 1
    before = cells(text[:first].replace("\t", "    "))
    span = max(1, cells(text[first : max(last, first + 1)].replace("\t", "    ")))
    if before >= room:
        return ""
    return " " * before + pen("^" * min(span, room - before), STYLES[finding.severity])


def cells(text: str) -> int:
    """The columns that ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _hung(head: str, used: int, text: str, pen: _Pen) -> Iterable[str]:
    """``head`` and ``text``, wrapped at blanks with the rest of the lines indented."""
    parts = textwrap.wrap(
        "x" * used + pen(text), pen.width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    yield head + parts[0][used:] if parts else head
    yield from parts[1:]
