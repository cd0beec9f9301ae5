"""The report for an issue or a pull request. Text from files can neither format nor link nor mention anybody."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trainwreck.core.results import Cause, Excerpt, Finding, Result
from trainwreck.report import listing, words
from trainwreck.report.safe import line, source_line
from trainwreck.report.sparkline import sparkline

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$^])")
_START = re.compile(r"^(\s*)([-+=:]|#{1,6}|\d{1,9}[.)])(?=\s|$|[-=:|])")
_LINKS = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp)(:)|\b(www)(\.)")
_MENTION = re.compile(r"@(?=[\w-])")
_ISSUE = re.compile(r"#(?=\d)|(?i:\bGH-)(?=\d)")
BREAK = "<!-- -->"
"""An empty comment: shown nowhere, and it stops the platforms from making a mention, an issue or a link."""

MAX_DETAILS = 50
"""Findings of ``check`` that are told with their code; a comment on a pull request has bounds."""


def escape(text: str) -> str:
    """``text`` on one line so that Markdown shows it letter by letter."""
    text = _SPECIAL.sub(r"\\\1", line(text).replace("&", "&amp;"))
    text = _START.sub(r"\1\\\2", text) if not text[:1].isdigit() else _START.sub(_escaped_number, text)
    text = _LINKS.sub(lambda m: f"{m[1] or m[3]}{BREAK}{m[2] or m[4]}", text)
    text = _MENTION.sub(f"@{BREAK}", text)
    return _ISSUE.sub(lambda m: f"{m[0]}{BREAK}", text)


def code(text: str) -> str:
    """``text`` as inline code, fenced by more backticks than it holds."""
    text = line(text)
    if not text:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def block(lines: Sequence[str], language: str = "") -> list[str]:
    """A fenced block that its content cannot end."""
    longest = max((len(run) for text in lines for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *lines, fence, ""]


def render(result: Result, form: str = "markdown", **_: Any) -> str:
    """The whole report; sections without content are left out."""
    if result.verb == "check":
        return "\n".join(_checked(result))
    lead = words.leaders(result)
    rows = [f"## {escape(words.headline(result))}", ""]
    if lead:
        rows += _cause(result, lead[0], first=True)
        for cause in lead[1:]:
            rows += [f"### Also: {escape(words.hedged(cause))}", "", *_cause(result, cause, first=False)]
    else:
        rows += _nothing(result)
    rows += _rivals(result, lead[0] if lead else None)
    told = {c.id for c in lead}
    rows += _list(
        "Findings",
        [
            f"{code(f'{f.path}:{f.line}')} {f.severity} {code(f.id)}: {escape(f.message)}"
            for f in result.findings
            if f.id not in told and f.sign != "unreadable"
        ],
    )
    rows += _list("Not seen, and it would help", [f"{escape(m.artefact)}: {escape(m.why)}" for m in result.missing])
    rows += _list("Suspects", [_suspect(s.verdict, s.text, s.id) for s in result.suspects])
    rows += _list("Symptoms", [f"{escape(s.text)}{_at(words.place(s.where))}" for s in result.symptoms])
    rows += _list("Could not be read", [escape(text) for text in result.unreadable])
    hint = f" · `trainwreck explain {lead[0].id}`" if lead else ""
    rows += [f"<sub>{words.counts(result)}{hint}</sub>", ""]
    return "\n".join(rows)


def _checked(result: Result) -> list[str]:
    """The answer of ``check``: a table to scan, then each finding with its code, its proof and its fix."""
    rows = [f"## {escape('trainwreck check: ' + words.checked(result))}", ""]
    if not result.findings:
        return rows
    rows += ["| | where | what |", "|---|---|---|"]
    rows += [
        f"| {f.severity} | {code(listing.place(f)).replace('|', ' ')} | {code(f.id)}: {escape(listing.message(f))} |"
        for f in result.findings
    ]
    shown = listing.lines_of(result)
    rows.append("")
    for item in result.findings[:MAX_DETAILS]:
        rows += _detail(item, result, shown)
    if len(result.findings) > MAX_DETAILS:
        rows += [f"and {len(result.findings) - MAX_DETAILS} more, in the table", ""]
    return rows


def _detail(item: Finding, result: Result, shown: listing.Lines) -> list[str]:
    facts = result.rules.get(item.id)
    rows = [f"**{item.severity}** {code(item.id)} at {code(listing.place(item))}: {escape(listing.message(item))}", ""]
    around = [(n, shown.get((item.path, item.cell, n))) for n in range(item.line - 2, item.line + 3)]
    told = [f"{'>' if n == item.line else ' '} {n:>5} | {source_line(text)}" for n, text in around if text is not None]
    rows += block(told, "text") if told else []
    rows += [f"- because {code(listing.link_place(p))} {code(p.text)}" for p in item.links]
    text = item.fix.text if item.fix else facts.fix if facts else ""
    rows += [f"- **Fix:** {escape(text)}"] if text else []
    rows.append("")
    for edit in item.fix.edits if item.fix else ():
        old = [shown.get((edit.path, edit.cell, n)) for n in range(edit.line, edit.end_line + 1)]
        change = [f"- {source_line(t)}" for t in old if t is not None]
        rows += block([*change, *(f"+ {source_line(t)}" for t in edit.text.splitlines())], "diff")
    return rows


def _cause(result: Result, cause: Cause, *, first: bool) -> list[str]:
    place = words.cause_place(cause)
    rows = [
        f"**{cause.severity}** · {code(cause.id)} · confidence {words.confidence(cause.confidence)}{_at(place, ' · ')}",
        "",
    ]
    rows += _list("Evidence", [f"{escape(words.evidence_text(e))}{_at(words.place(e.where))}" for e in cause.evidence])
    rows += _list("Against", [f"{escape(words.evidence_text(e))}{_at(words.place(e.where))}" for e in cause.against])
    chart = words.telling_chart(result, cause) if first else None
    drawn = sparkline(chart, [e.sign for e in cause.evidence]) if chart else None
    if drawn:
        rows += block(
            [drawn.blocks, *([drawn.marks] if drawn.marks else []), f"{drawn.label}: {drawn.figures}"], "text"
        )
    excerpt = words.excerpt_of(cause, result.excerpts)
    if excerpt:
        rows += [f"{code(f'{excerpt.path}:{excerpt.marked[0] if excerpt.marked else excerpt.first_line}')}", ""]
        rows += block(_numbered(excerpt), "text")
    if first and len(result.chain) > 1:
        named = words.titles(result)
        rows += ["**Chain:** " + " → ".join(escape(named.get(i, i)) for i in result.chain), ""]
    parts = (
        ("Why", cause.why),
        ("Fix", cause.fix.text),
        ("Expect", cause.expected_impact),
        ("Verify", cause.verify),
        ("If not", cause.if_not),
    )
    rows += [f"- **{label}:** {escape(text)}" for label, text in parts if text.strip()]
    rows.append("")
    for edit in cause.fix.edits:
        shown = [f"+ {source_line(text)}" for text in edit.text.splitlines()]
        rows += [f"{code(f'{edit.path}:{edit.line}')}", "", *block(shown, "diff")]
    return rows


def _numbered(excerpt: Excerpt) -> list[str]:
    numbers = range(excerpt.first_line, excerpt.first_line + len(excerpt.lines))
    pairs = zip(numbers, excerpt.lines, strict=True)
    return [f"{'>' if n in excerpt.marked else ' '} {n:>5} | {source_line(text)}" for n, text in pairs]


def _nothing(result: Result) -> list[str]:
    rows = []
    if result.read:
        names = ", ".join(code(n) for n in result.read[:6]) + (
            f" and {len(result.read) - 6} more" if len(result.read) > 6 else ""
        )
        rows.append(f"- Read {words.plural(len(result.read), 'file')}: {names}")
    for run in result.runs:
        last = f", last step {words.step(run.steps)}" if run.steps is not None else ""
        rows.append(f"- Run {code(run.path)} ({escape(run.format)}): {escape(run.outcome)}{last}")
    seen = words.looked_at(result)
    rows.append(f"- Looked at: {escape(seen)}" if seen else "- There was nothing in it that could be judged")
    return [*rows, ""]


def _rivals(result: Result, lead: Cause | None) -> list[str]:
    rows = []
    for cause in words.others(result):
        decides = words.deciding(cause, lead)
        rows.append(
            f"{escape(cause.title)} ({code(cause.id)}, {cause.confidence:.2f})"
            + (f"; decides: {escape(decides)}" if decides else "")
        )
    return _list("Other candidates", rows)


def _suspect(verdict: str, text: str, name: str | None) -> str:
    return f"**{verdict}**: {escape(text)}" + (f" (taken for {code(name)})" if name else "")


def _list(title: str, items: Sequence[str]) -> list[str]:
    unique = list(dict.fromkeys(i for i in items if i))
    return [f"**{title}**", "", *(f"- {item}" for item in unique), ""] if unique else []


def _at(place: str, before: str = " at ") -> str:
    return f"{before}{code(place)}" if place else ""


def _escaped_number(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2][:-1]}\\{match[2][-1]}" if match[2][0].isdigit() else f"{match[1]}\\{match[2]}"
