"""The report on a screen: the verdict first, then what it rests on, what to do, and what would settle the doubt."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from trainwreck.core.results import Cause, Chart, Excerpt, Result
from trainwreck.report import words
from trainwreck.report.safe import line, source_line, to_ascii
from trainwreck.report.sparkline import sparkline

if TYPE_CHECKING:
    from rich.text import Text

GUTTER = 11
WIDEST, NARROWEST = 100, 40
MAX_EVIDENCE, MAX_OTHERS, MAX_LISTED = 4, 3, 3
"""What fits on one screen of 40 lines together with the rest; what is left out is counted."""
SEVERITY_STYLE = {"critical": "bold red", "warning": "bold yellow", "suggestion": "bold cyan"}
VERDICT_STYLE = {"supported": "green", "refuted": "red", "undecided": "yellow"}


def render(
    result: Result, form: str = "full", *, color: bool = False, unicode: bool = True, width: int = WIDEST, **_: Any
) -> str:
    """The report as text of at most ``width`` columns. ``unicode`` False: ASCII only."""
    page = _Page(color, max(NARROWEST, min(width, WIDEST)), unicode)
    lead = words.leaders(result)
    page.verdict(result, lead)
    if lead:
        _leading(page, result, lead[0])
        _further(page, lead[1:])
    else:
        _nothing(page, result)
    _others(page, result, lead[0] if lead else None)
    _findings(page, result, {c.id for c in lead})
    page.items("Not seen", [f"{line(m.artefact, 80)}: {line(m.why, 240)}" for m in result.missing], MAX_LISTED)
    _suspects(page, result)
    told = {e.sign for c in result.root_causes for e in c.evidence} if lead else set()
    symptoms = [(words.place(s.where), line(s.text, 300)) for s in result.symptoms if s.id not in told]
    page.items("Symptoms", [f"{at}  {text}" if at else text for at, text in symptoms], MAX_LISTED)
    page.items("Unreadable", [line(text, 300) for text in result.unreadable], MAX_LISTED)
    page.footer(result, lead or words.others(result))
    return page.text()


def _leading(page: _Page, result: Result, cause: Cause) -> None:
    page.gap()
    _evidence(page, "Evidence", cause, MAX_EVIDENCE)
    page.items("Against", [_sighting(words.place(e.where), words.evidence_text(e)) for e in cause.against], 2)
    chart = words.telling_chart(result, cause)
    if chart is not None:
        page.curve(chart, [e.sign for e in cause.evidence])
    excerpt = words.excerpt_of(cause, result.excerpts)
    if excerpt is not None:
        page.excerpt(excerpt)
    page.gap()
    if len(result.chain) > 1:
        named = words.titles(result)
        page.row("Chain", " → ".join(named.get(i, line(i)) for i in result.chain))
    page.row("Why", _sentences(line(cause.why), 2 * page.inner))
    page.row("Fix", line(cause.fix.text, 600), style="bold")
    for edit in cause.fix.edits[:1]:
        page.edit(edit.path, edit.line, edit.text.splitlines()[:4])
    page.row("Expect", line(cause.expected_impact, 400))
    page.row("Verify", line(cause.verify, 400))
    page.row("If not", line(cause.if_not, 400))
    if cause.confidence < words.MEDIUM and cause.experiment:
        page.row("To be sure", line(cause.experiment, 400))


def _evidence(page: _Page, label: str, cause: Cause, limit: int) -> None:
    rows: list[tuple[str, str]] = []
    for item in cause.evidence:
        row = (words.place(item.where), words.evidence_text(item))
        if row not in rows:
            rows.append(row)
    for place, text in rows[:limit]:
        page.sighting(label, place, text)
        label = ""
    if len(rows) > limit:
        page.row("", f"and {len(rows) - limit} more", style="dim")


def _further(page: _Page, causes: Sequence[Cause]) -> None:
    """Independent roots and contributors after the first: title, place, one sighting, the fix."""
    for cause in causes[:MAX_OTHERS]:
        page.gap()
        role = "also" if cause.role == "root" else "contributing"
        page.title(cause.severity, cause.title)
        page.facts([cause.id, role, f"confidence {words.confidence(cause.confidence)}", words.cause_place(cause)])
        _evidence(page, "Evidence", cause, 1)
        page.row("Fix", line(cause.fix.text, 400), style="bold")
    page.more(len(causes) - MAX_OTHERS, "more cause")


def _others(page: _Page, result: Result, lead: Cause | None) -> None:
    rivals = words.others(result)
    if not rivals:
        return
    page.gap()
    for number, cause in enumerate(rivals[:MAX_OTHERS]):
        label = "Or" if lead else "Candidates"
        page.row("" if number else label, f"{line(cause.title, 200)} ({cause.id}, {cause.confidence:.2f})")
        decides = words.deciding(cause, lead)
        if decides:
            page.row("", f"decides: {decides}", style="dim", indent=2)
    page.more(len(rivals) - MAX_OTHERS, "more candidate")


def _findings(page: _Page, result: Result, told: set[str]) -> None:
    """Static findings that no cause has told already; unreadable files have their own lines."""
    shown = [f for f in result.findings if f.id not in told and f.sign != "unreadable"]
    for number, item in enumerate(shown[:MAX_LISTED]):
        place = f"{line(item.path, 300)}:{item.line}:{item.column}"
        page.sighting("" if number else "Findings", place, f"{item.severity} {item.id}: {line(item.message, 300)}")
    page.more(len(shown) - MAX_LISTED, "more finding")


def _suspects(page: _Page, result: Result) -> None:
    for number, item in enumerate(result.suspects[:6]):
        taken = f" (taken for {item.id})" if item.id else " (no known failure mode)"
        text = f"{item.verdict}: {line(item.text, 160)}{taken}"
        page.row("" if number else "Suspects", text, first_style=VERDICT_STYLE[item.verdict])
        if item.evidence:
            first = item.evidence[0]
            page.row("", _sighting(words.place(first.where), words.evidence_text(first)), style="dim", indent=2)


def _nothing(page: _Page, result: Result) -> None:
    """Silence must be informative: what was read, what could be judged in it, how the runs ended."""
    page.gap()
    if result.read:
        names = [line(n, 160) for n in result.read]
        extra = f" and {len(names) - 4} more" if len(names) > 4 else ""
        page.row("Read", f"{words.plural(len(names), 'file')}: {', '.join(names[:4])}{extra}")
    for number, run in enumerate(result.runs[:MAX_LISTED]):
        parts = [line(run.path, 160), line(run.format, 40), f"{line(run.outcome, 40)}"]
        if run.steps is not None:
            parts.append(f"last step {words.step(run.steps)}")
        parts.append(words.plural(len(run.metrics), "metric"))
        if run.attempt > 1:
            parts.append(f"attempt {run.attempt}")
        page.row("" if number else "Runs", ", ".join(parts))
    page.more(len(result.runs) - MAX_LISTED, "more run")
    seen = words.looked_at(result)
    page.row("Looked at", seen if seen else "nothing that could be judged: no metrics, no errors, no code")
    chart = words.telling_chart(result)
    if chart is not None:
        page.curve(chart, ())


def _sighting(place: str, text: str) -> str:
    return f"{place}  {text}" if place else text


def _sentences(text: str, limit: int) -> str:
    """The first sentences of ``text`` that fit into ``limit`` characters; at least one."""
    if len(text) <= limit:
        return text
    end = max(text.rfind(stop, 0, limit) for stop in (". ", "; "))
    return text[:end] + "." if end > 40 else text[: limit - 1].rstrip() + "…"


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


class _Page:
    """Rows with a label in the gutter, collected as rich text and written once."""

    def __init__(self, color: bool, width: int, unicode: bool) -> None:
        from rich.console import Console

        self.width, self.unicode = width, unicode
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
            self.row("" if number else label, text)
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
            self.title(first.severity, first.title)
            place = words.cause_place(first)
            when = "" if " step " in place else words.seen_when(first)
            self.facts([first.id, f"confidence {words.confidence(first.confidence)}", place, when])
        else:
            good = result.status in ("complete", "nothing_found") and not result.root_causes
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
                label = "Code" if number == max(marked[0] - 1, excerpt.first_line) else ""
                body = Text.assemble(
                    (f"{arrow}{number:>5} ", "bold red" if here else "dim"),
                    (self._fit("│ "), "dim"),
                    (text, "bold" if here else ""),
                )
                self.rows.append(Text.assemble((label.ljust(GUTTER), "dim"), body))

    def edit(self, path: str, number: int, lines: Sequence[str]) -> None:
        from rich.text import Text

        self._put("", Text(self._fit(f"{line(path, 300)}:{number}"), style="cyan"), indent=2)
        for text in lines:
            self.rows.append(
                Text.assemble(" " * (GUTTER + 2), (self._fit("+ " + source_line(text, self.inner - 6)), "green"))
            )

    def gap(self) -> None:
        if self.rows and self.rows[-1] is not None:
            self.rows.append(None)

    def footer(self, result: Result, named: Sequence[Cause]) -> None:
        from rich.text import Text

        self.gap()
        text = words.counts(result)
        if named:
            text += f"; more: trainwreck explain {named[0].id}"
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
