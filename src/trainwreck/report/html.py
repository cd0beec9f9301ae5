"""One HTML file that opens offline, is readable without JavaScript and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from trainwreck import __version__
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.results import Cause, Chart, Excerpt, Result
from trainwreck.report import heat, listing, svg, words
from trainwreck.report.json import dumps
from trainwreck.report.safe import line, source_line

ASSETS = Path(__file__).with_name("assets")
MAX_CHARTS = 12
"""Curves drawn; with these a report stays below 300 kB."""
MAX_SETTINGS = 400


def render(result: Result, form: str = "html", **_: Any) -> str:
    """The whole page as text."""
    from markupsafe import Markup

    style = _asset("uPlot.min.css") + _asset("report.css")
    scripts = [_asset("uPlot.iife.min.js"), _asset("report.js")]
    charts = _charts(result)
    page: str = _template().render(
        policy=_policy(style, scripts),
        # Our own files, and JSON with every character that could end the element escaped.
        style=Markup(style),
        scripts=[Markup(s) for s in scripts] if charts else [Markup(scripts[1])],
        chart_data=Markup(_embeddable([_data(c, d) for c, d in charts])),
        answer=Markup(_embeddable(result.to_json())),
        charts=[drawn for _, drawn in charts],
        **_view(result),
    )
    return page.lstrip()


def _view(result: Result) -> dict[str, Any]:
    lead = words.leaders(result) if result.verb == "diagnose" else []
    first = lead[0] if lead else None
    named = words.titles(result)
    told = {c.id for c in lead}
    seen = words.telling_signs(result)
    span = _span(result)
    return {
        "version": __version__,
        "axis": _axis(result, span) if first and any(e.where.step is not None for e in first.evidence) else None,
        "status": result.status,
        "headline": words.checked(result) if result.verb == "check" else words.headline(result),
        "verb": result.verb,
        "checked": _checked(result) if result.verb == "check" else [],
        "clear": words.clear(result),
        "counts": words.counts(result),
        "lead": _cause(result, first, span) if first else None,
        "also": [_cause(result, c, span) for c in lead[1:]],
        "chain": [{"id": i, "title": named.get(i, i)} for i in result.chain] if len(result.chain) > 1 else [],
        "rivals": [
            {"cause": c, "decides": words.deciding(c, first)}
            for c in (words.others(result) if result.verb == "diagnose" else ())
        ],
        "findings": [
            f for f in result.findings if result.verb == "diagnose" and f.id not in told and f.sign != "unreadable"
        ],
        "suspects": [{"it": s, "evidence": [_sighting(e, span) for e in s.evidence[:3]]} for s in result.suspects],
        "symptoms": [
            {"text": s.text, "place": words.place(s.where)} for s in result.symptoms if not first or s.id not in seen
        ],
        "missing": result.missing,
        "unreadable": result.unreadable,
        "modules": [heat.view(m) for m in result.modules],
        "runs": [
            {"it": r, "steps": words.step(r.steps) if r.steps is not None else "", "metrics": ", ".join(r.metrics)}
            for r in result.runs
        ],
        "settings": [_setting(s.key, s.value, s.where) for s in result.settings[:MAX_SETTINGS]],
        "deviations": _deviations(result),
        "read": result.read,
        "looked_at": words.looked_at(result),
        "excerpts": _other_excerpts(result, first) if result.verb == "diagnose" else [],
        "artifacts": sorted(result.analysis_artifacts.items()),
    }


def _cause(result: Result, cause: Cause, span: tuple[float, float] | None) -> dict[str, Any]:
    excerpt = words.excerpt_of(cause, result.excerpts)
    return {
        "it": cause,
        "title": words.hedged(cause),
        "confidence": words.confidence(cause.confidence),
        "sure": {"high": "root cause", "medium": "likely root cause", "low": "possible root cause"}[
            words.confidence_word(cause.confidence)
        ],
        "meter": round(100 * cause.confidence),
        "place": words.cause_place(cause),
        "when": words.seen_when(cause),
        "evidence": _unique([_sighting(e, span) for e in cause.evidence]),
        "against": _unique([_sighting(e, span) for e in cause.against]),
        "excerpt": _excerpt(excerpt) if excerpt else None,
        "edits": [
            {"path": e.path, "line": e.line, "lines": [source_line(t) for t in e.text.splitlines()]}
            for e in cause.fix.edits
        ],
        "unsure": cause.confidence < words.MEDIUM and bool(cause.experiment),
    }


def _checked(result: Result) -> list[dict[str, Any]]:
    """The findings of ``check`` with their code, proof and fix."""
    shown = listing.lines_of(result)
    told = []
    for item in result.findings:
        around = [(n, shown.get((item.path, item.cell, n))) for n in range(item.line - 2, item.line + 3)]
        rows = [(n, source_line(text), n == item.line) for n, text in around if text is not None]
        facts = result.rules.get(item.id)
        edits = [
            {
                "path": e.path,
                "line": e.line,
                "lines": [source_line(t) for t in e.text.splitlines()],
            }
            for e in (item.fix.edits if item.fix else ())
        ]
        told.append(
            {
                "it": item,
                "message": listing.message(item),
                "code": {"path": listing.place(item), "title": "", "rows": rows},
                "fix": item.fix.text if item.fix else facts.fix if facts else "",
                "why": facts.why if facts else "",
                "edits": edits,
            }
        )
    return told


def _unique(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    for item in items:
        kept.setdefault((item["place"], item["text"]), item)
    return list(kept.values())


def _sighting(item: Evidence, span: tuple[float, float] | None) -> dict[str, Any]:
    """One sighting with its place on the axis of the run, in per cent, where it has a step."""
    at = end = None
    step = item.where.step
    if span is not None and step is not None and math.isfinite(step) and span[0] <= step <= span[1]:
        at = svg.position(step, *span)
        last = item.end if item.end is not None and math.isfinite(item.end) and item.end > step else None
        end = svg.position(last, *span) if last is not None else None
    return {
        "text": words.evidence_text(item),
        "place": words.place(item.where),
        "cls": item.cls,
        "sign": item.sign,
        "at": at,
        "width": round(end - at, 2) if at is not None and end is not None else None,
    }


def _span(result: Result) -> tuple[float, float] | None:
    """The steps that the charts cover together, if they share a unit: the axis of the evidence."""
    if len({c.unit for c in result.charts}) != 1:
        return None
    steps = [s for c in result.charts if len(c.steps) for s in (min(c.steps), max(c.steps))]
    finite = [s for s in steps if math.isfinite(s)]
    return (min(finite), max(finite)) if finite and max(finite) > min(finite) else None


def _axis(result: Result, span: tuple[float, float] | None) -> tuple[str, str] | None:
    if span is None:
        return None
    unit = line(result.charts[0].unit, 40)
    return f"{unit} {words.step(span[0])}", f"{unit} {words.step(span[1])}"


def _charts(result: Result) -> list[tuple[Chart, svg.Drawn]]:
    """The curves to draw: the telling one, the marked ones, then the others in their order."""
    lead = words.leaders(result)
    first = words.telling_chart(result, lead[0] if lead else None)
    telling = words.telling_signs(result)
    order = sorted(result.charts, key=lambda c: (c is not first, not any(m.sign in telling for m in c.marks)))
    drawn = [(c, d) for c in order if (d := svg.draw(c, telling)) is not None and d.count > 1]
    return drawn[:MAX_CHARTS]


def _data(chart: Chart, drawn: svg.Drawn) -> dict[str, Any]:
    """A curve for the script: five significant digits are more than a screen shows."""
    pairs = svg.points(chart)
    return {
        "name": line(chart.name, 80),
        "unit": line(chart.unit, 40),
        "log": drawn.log,
        "x": [float(f"{s:.8g}") for s, _ in pairs],
        "y": [float(f"{v:.5g}") if math.isfinite(v) else None for _, v in pairs],
        "marks": [[s, m.quiet] for s, m in zip(svg.marked_steps(chart), drawn.marks, strict=True)],
    }


def _excerpt(excerpt: Excerpt) -> dict[str, Any]:
    numbers = range(excerpt.first_line, excerpt.first_line + len(excerpt.lines))
    rows = [(n, source_line(text), n in excerpt.marked) for n, text in zip(numbers, excerpt.lines, strict=True)]
    at = excerpt.marked[0] if excerpt.marked else excerpt.first_line
    return {"path": f"{line(excerpt.path, 300)}:{at}", "title": line(excerpt.title, 200), "rows": rows}


def _other_excerpts(result: Result, first: Cause | None) -> list[dict[str, Any]]:
    shown = {id(words.excerpt_of(c, result.excerpts)) for c in words.leaders(result)}
    return [_excerpt(e) for e in result.excerpts if id(e) not in shown][:6]


def _setting(key: str, value: Any, where: Where) -> dict[str, str]:
    text = words.number(value) if isinstance(value, float) else str(value)
    return {
        "key": line(key, 200),
        "value": line(text, 300),
        "place": words.place(Where(where.kind, where.path, where.line)),
    }


def _deviations(result: Result) -> list[dict[str, str]]:
    """Requirements of the instructions that the program does not meet."""
    told = (result.compliance or {}).get("requirements", [])
    return [
        {k: line(str(r.get(k, ""))) for k in ("key", "want", "got", "status", "where")}
        for r in told
        if r.get("status") != "match"
    ]


def _embeddable(value: Any) -> str:
    """JSON that cannot end its script element, whatever it quotes."""
    return dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Only this style and these scripts, by their hashes; nothing may be loaded, sent or framed."""
    allowed = " ".join(_digest(s) for s in scripts)
    return f"default-src 'none'; style-src {_digest(style)}; script-src {allowed}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _template() -> Any:
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["t"] = lambda text: line(str(text))
    return environment.from_string(_asset("report.html.j2"))


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8").strip() + "\n"
