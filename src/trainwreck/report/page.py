"""A page of a terminal: rows with a label in the gutter, wrapped at blanks, coloured, written once."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trainwreck.core.results import Cause, Chart, Edit, Excerpt, Result
from trainwreck.core.row import Row
from trainwreck.report import words
from trainwreck.report.safe import line, source_line, to_ascii
from trainwreck.report.sparkline import sparkline

if TYPE_CHECKING:
    from rich.text import Text

GUTTER = 11
CODE_SUFFIXES = (".py", ".ipynb", ".sh", ".yaml", ".yml", ".toml", ".json", ".cfg", ".ini")
SEVERITY_STYLE = {"critical": "bold red", "warning": "bold yellow", "suggestion": "bold cyan"}


class Limits(Row):
    """How many sightings, other causes and listed items are shown, and how many lines a paragraph may take."""

    evidence: int
    others: int
    listed: int
    prose: int


def _wrapped(body: Text, width: int) -> list[Text]:
    """``body`` in lines of at most ``width`` cells, broken at blanks only: a broken path can't be clicked."""
    from rich.cells import cell_len

    breaks, used, at = [], 0, 0
    for word in body.plain.split(" "):
        size = cell_len(word)
        if used and used + size > width:
            breaks.append(at)
            used = 0
        used += size + 1
        at += len(word) + 1
    lines = list(body.divide(breaks)) if breaks else [body]
    for part in lines:
        part.rstrip()
    return lines


def _sentences(text: str, limit: int) -> str:
    """The first sentences of ``text`` that fit into ``limit`` characters; at least one."""
    if len(text) <= limit:
        return text
    end = max(text.rfind(stop, 0, limit) for stop in (". ", "; "))
    return text[:end] + "." if end > 40 else text[: limit - 1].rstrip() + "…"


class Page:
    """Rows with a label in the gutter, collected as rich text and written once."""

    def __init__(self, color: bool, width: int, unicode: bool, limits: Limits) -> None:
        from rich.console import Console

        self.width, self.unicode, self.limits = width, unicode, limits
        self.inner = width - GUTTER
        self.buffer = io.StringIO()
        self.console = Console(
            file=self.buffer,
            width=10_000,
            force_terminal=color,
            no_color=not color,
            color_system="standard" if color else None,
            legacy_windows=False,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=True,
            force_jupyter=False,
        )
        self.rows: list[Text | None] = []

    def _put(self, label: str, body: Text, indent: int = 0, label_style: str = "dim") -> None:
        from rich.text import Text

        for number, part in enumerate(_wrapped(body, self.inner - indent)):
            head = Text((label if number == 0 else "").ljust(GUTTER), style=label_style)
            self.rows.append(Text.assemble(head, " " * indent, part))

    def row(self, label: str, text: str, style: str = "", indent: int = 0, first_style: str = "") -> None:
        """A labelled paragraph; nothing at all where the text is empty. ``first_style`` is for its first word."""
        from rich.text import Text

        if text:
            body = Text(self._fit(text), style=style)
            if first_style:
                body.stylize(first_style, 0, text.find(":") if ":" in text else len(text))
            self._put(label, body, indent)

    def prose(self, label: str, text: str) -> None:
        """A labelled paragraph, cut at a sentence where it would take more lines than the limits allow."""
        self.row(label, _sentences(line(text), self.limits.prose * (self.inner - 3)))

    def sighting(self, label: str, place: str, text: str) -> None:
        """A place to click and what was seen there; on one line where it fits, else the text below."""
        from rich.text import Text

        place, text = self._fit(place), self._fit(text)
        if not place:
            return self.row(label, text)
        if len(place) + 2 + len(text) <= self.inner:
            self._put(label, Text.assemble((place, "cyan"), "  ", text))
            return None
        self._put(label, Text(place, style="cyan"))
        return self._put("", Text(text), indent=2)

    def items(self, label: str, texts: Iterable[str], limit: int) -> None:
        every = [t for t in texts if t]
        for number, text in enumerate(every[:limit]):
            self.row("" if number else label, _sentences(text, self.limits.prose * (self.inner - 3)))
        self.more(len(every) - limit, "more")

    def more(self, count: int, what: str) -> None:
        if count > 0:
            noun = what if what == "more" or count == 1 else what + "s"
            self.row("", f"and {count} {noun}", style="dim")

    def title(self, severity: str, title: str) -> None:
        from rich.text import Text

        self._put(
            severity.upper(), Text(self._fit(line(title, 300)), style="bold"), label_style=SEVERITY_STYLE[severity]
        )

    def facts(self, parts: Sequence[str]) -> None:
        """Short facts beside one another, as many to a line as fit."""
        rows: list[str] = []
        for part in filter(None, parts):
            if rows and len(rows[-1]) + 3 + len(part) <= self.inner:
                rows[-1] += f" · {part}"
            else:
                rows.append(part)
        for text in rows:
            self.row("", text)

    def verdict(self, result: Result, lead: Sequence[Cause]) -> None:
        from rich.text import Text

        if lead:
            first = lead[0]
            self.title(first.severity, words.hedged(first))
            place = words.cause_place(first)
            when = "" if " step " in place else words.seen_when(first)
            self.facts([first.id, f"confidence {words.confidence(first.confidence)}", place, when])
        else:
            good = words.clear(result) and result.status != "partial"
            self._put(
                "NO CAUSE" if result.status != "unreadable" else "UNREADABLE",
                Text(words.headline(result), style="bold"),
                label_style="bold green" if good else "bold yellow",
            )
        if result.status == "partial":
            count = words.plural(len(result.unreadable), "input")
            self.row("", f"partial: {count} could not be read, see below", style="yellow")

    def curve(self, chart: Chart, signs: Sequence[str]) -> None:
        from rich.text import Text

        drawn = sparkline(chart, signs, unicode=self.unicode, width=min(56, self.inner))
        if drawn is None:
            return
        self.rows.append(Text.assemble(("Curve".ljust(GUTTER), "dim"), drawn.blocks))
        if drawn.marks:
            self.rows.append(Text.assemble(" " * GUTTER, (drawn.marks, "bold red")))
        self._put("", Text(self._fit(f"{drawn.label}: {drawn.figures}"), style="dim"))

    def excerpt(self, excerpt: Excerpt) -> None:
        """The marked line and its two neighbours."""
        from rich.text import Text

        marked = [n for n in excerpt.marked if excerpt.first_line <= n < excerpt.first_line + len(excerpt.lines)]
        if not marked:
            return
        for number in range(marked[0] - 1, marked[0] + 2):
            index = number - excerpt.first_line
            if 0 <= index < len(excerpt.lines):
                here = number == marked[0]
                text = self._fit(source_line(excerpt.lines[index], self.inner - 9))
                arrow = ">" if here else " "
                kind = "Code" if excerpt.path.endswith(CODE_SUFFIXES) else "Lines"
                label = kind if number == max(marked[0] - 1, excerpt.first_line) else ""
                body = Text.assemble(
                    (f"{arrow}{number:>5} ", "bold red" if here else "dim"),
                    (self._fit("│ "), "dim"),
                    (text, "bold" if here else ""),
                )
                self.rows.append(Text.assemble((label.ljust(GUTTER), "dim"), body))

    def edit(self, edit: Edit, excerpt: Excerpt | None) -> None:
        """The change as a diff: the old lines where an excerpt shows them, then the new ones, at most four of each."""
        from rich.text import Text

        old: list[str] = []
        if excerpt is not None and excerpt.path == edit.path:
            numbered = enumerate(excerpt.lines, excerpt.first_line)
            old = [text for number, text in numbered if edit.line <= number <= edit.end_line]
        self._put("", Text(self._fit(f"{line(edit.path, 300)}:{edit.line}"), style="cyan"), indent=2)
        for sign, style, lines in (("-", "red", old), ("+", "green", edit.text.splitlines())):
            for text in lines[:4]:
                shown = self._fit(f"{sign} {source_line(text, self.inner - 6)}")
                self.rows.append(Text.assemble(" " * (GUTTER + 2), (shown, style)))

    def gap(self) -> None:
        if self.rows and self.rows[-1] is not None:
            self.rows.append(None)

    def footer(self, result: Result, named: Sequence[Cause]) -> None:
        from rich.text import Text

        self.gap()
        text = words.counts(result)
        if named:
            text += f"; more: trainwreck explain {named[0].id}"
        elif not words.clear(result) and result.status != "unreadable":
            text += "; more: trainwreck explain --search WORDS"
        body = Text(self._fit(text))
        self.rows += _wrapped(body, self.width)

    def _fit(self, text: str) -> str:
        return text if self.unicode else to_ascii(text)

    def text(self) -> str:
        from rich.text import Text

        for row in self.rows:
            self.console.print(row if row is not None else Text(""), end="\n")
        written = self.buffer.getvalue()
        return "\n".join(part.rstrip() for part in written.split("\n")).rstrip("\n") + "\n"
