"""The report on a screen: the verdict first, then what it rests on, what to do, and what would settle the doubt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainwreck.core.results import Cause, Result
from trainwreck.report import listing, words
from trainwreck.report.page import Limits, Page
from trainwreck.report.safe import line

WIDEST, NARROWEST = 100, 40
SCREEN = 40
"""Lines of a screen. A longer answer is told again with less of each kind; what is left out is counted."""
VERDICT_STYLE = {"supported": "green", "refuted": "red", "undecided": "yellow"}


LIMITS = (Limits(4, 3, 3, 3), Limits(3, 2, 2, 2), Limits(2, 1, 1, 2))


def render(
    result: Result, form: str = "full", *, color: bool = False, unicode: bool = True, width: int = WIDEST, **_: Any
) -> str:
    """The report as text of at most ``width`` columns. ``unicode`` False: ASCII only."""
    if result.verb == "check":
        return listing.render(result, color=color, unicode=unicode, width=width)
    from trainwreck.report.page import Page

    for limits in LIMITS:
        page = Page(color, max(NARROWEST, min(width, WIDEST)), unicode, limits)
        _compose(page, result)
        if len(page.rows) <= SCREEN:
            break
    return page.text()


def _compose(page: Page, result: Result) -> None:
    lead = words.leaders(result)
    page.verdict(result, lead)
    if lead:
        _leading(page, result, lead[0])
        _further(page, lead[1:])
    else:
        _nothing(page, result)
    _others(page, result, lead[0] if lead else None)
    _findings(page, result, {c.id for c in lead})
    most = page.limits.listed
    page.items("Not seen", [f"{line(m.artefact, 80)}: {line(m.why, 240)}" for m in result.missing], most)
    _suspects(page, result)
    told = words.telling_signs(result) if lead else frozenset()
    symptoms = [(words.place(s.where), line(s.text, 300)) for s in result.symptoms if s.id not in told]
    page.items("Symptoms", [f"{at}  {text}" if at else text for at, text in symptoms], most)
    page.items("Unreadable", [line(text, 300) for text in result.unreadable], most)
    page.footer(result, lead or words.others(result))


def _leading(page: Page, result: Result, cause: Cause) -> None:
    page.gap()
    _evidence(page, "Evidence", cause, page.limits.evidence)
    page.items("Against", [_sighting(words.place(e.where), words.evidence_text(e)) for e in cause.against], 2)
    chart = words.telling_chart(result, cause)
    if chart is not None:
        page.curve(chart, [e.sign for e in cause.evidence])
    excerpt = words.excerpt_of(cause, result.excerpts)
    edit = next(iter(cause.fix.edits), None)
    if excerpt is not None and (edit is None or edit.path != excerpt.path):
        page.excerpt(excerpt)
    page.gap()
    if len(result.chain) > 1:
        named = words.titles(result)
        page.row("Chain", " → ".join(named.get(i, line(i)) for i in result.chain))
    page.prose("Why", cause.why)
    page.row("Fix", line(cause.fix.text, 600), style="bold")
    if edit is not None:
        page.edit(edit, excerpt)
    page.prose("Expect", cause.expected_impact)
    page.prose("Verify", cause.verify)
    page.prose("If not", cause.if_not)
    if cause.confidence < words.MEDIUM and cause.experiment:
        page.prose("To be sure", cause.experiment)


def _evidence(page: Page, label: str, cause: Cause, limit: int) -> None:
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


def _further(page: Page, causes: Sequence[Cause]) -> None:
    """Independent roots and contributors after the first: title, place, one sighting, the fix."""
    if not causes:
        return
    page.gap()
    for cause in causes[: page.limits.others]:
        if cause.confidence < words.MEDIUM:
            _aside(page, cause)
            continue
        page.gap()
        role = "also" if cause.role == "root" else "contributing"
        page.title(cause.severity, words.hedged(cause))
        page.facts([cause.id, role, f"confidence {words.confidence(cause.confidence)}", words.cause_place(cause)])
        _evidence(page, "Evidence", cause, 1)
        page.row("Fix", line(cause.fix.text, 400), style="bold")
    page.more(len(causes) - page.limits.others, "more cause")


def _aside(page: Page, cause: Cause) -> None:
    """A further cause of low confidence: its name, and what it rests on."""
    page.row(
        "Also" if cause.role == "root" else "Perhaps", f"{words.hedged(cause)} ({cause.id}, {cause.confidence:.2f})"
    )
    if cause.evidence:
        first = cause.evidence[0]
        page.row("", _sighting(words.place(first.where), words.evidence_text(first)), style="dim", indent=2)


def _others(page: Page, result: Result, lead: Cause | None) -> None:
    rivals = words.others(result)
    if not rivals:
        return
    page.gap()
    for number, cause in enumerate(rivals[: page.limits.others]):
        label = "Or" if lead else "Candidates"
        page.row("" if number else label, f"{line(cause.title, 200)} ({cause.id}, {cause.confidence:.2f})")
        decides = words.deciding(cause, lead)
        if decides:
            page.row("", f"decides: {decides}", style="dim", indent=2)
    page.more(len(rivals) - page.limits.others, "more candidate")


def _findings(page: Page, result: Result, told: set[str]) -> None:
    """Static findings that no cause has told already; unreadable files have their own lines."""
    shown = [f for f in result.findings if f.id not in told and f.sign != "unreadable"]
    for number, item in enumerate(shown[: page.limits.listed]):
        place = f"{line(item.path, 300)}:{item.line}:{item.column}"
        page.sighting("" if number else "Findings", place, f"{item.severity} {item.id}: {line(item.message, 300)}")
    page.more(len(shown) - page.limits.listed, "more finding")


def _suspects(page: Page, result: Result) -> None:
    for number, item in enumerate(result.suspects[:6]):
        taken = f" (taken for {item.id})" if item.id else " (no known failure mode)"
        text = f"{item.verdict}: {line(item.text, 160)}{taken}"
        page.row("" if number else "Suspects", text, first_style=VERDICT_STYLE[item.verdict])
        if item.evidence:
            first = item.evidence[0]
            page.row("", _sighting(words.place(first.where), words.evidence_text(first)), style="dim", indent=2)


def _nothing(page: Page, result: Result) -> None:
    """Silence must be informative: what was read, what could be judged in it, how the runs ended."""
    page.gap()
    if result.read:
        names = [line(n, 160) for n in result.read]
        extra = f" and {len(names) - 4} more" if len(names) > 4 else ""
        page.row("Read", f"{words.plural(len(names), 'file')}: {', '.join(names[:4])}{extra}")
    for number, run in enumerate(result.runs[: page.limits.listed]):
        parts = [line(run.path, 160), line(run.format, 40), f"{line(run.outcome, 40)}"]
        if run.steps is not None:
            parts.append(f"last step {words.step(run.steps)}")
        parts.append(words.plural(len(run.metrics), "metric"))
        if run.attempt > 1:
            parts.append(f"attempt {run.attempt}")
        page.row("" if number else "Runs", ", ".join(parts))
    page.more(len(result.runs) - page.limits.listed, "more run")
    seen = words.looked_at(result)
    if result.read:
        page.row("Looked at", seen if seen else "nothing that could be judged: no metrics, no errors, no code")
    chart = words.telling_chart(result)
    if chart is not None:
        page.curve(chart, [s.id for s in result.symptoms])


def _sighting(place: str, text: str) -> str:
    return f"{place}  {text}" if place else text
