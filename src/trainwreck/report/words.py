"""The wording that all formats share: numbers, places, confidence, the status in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.results import Cause, Chart, Excerpt, Result
from trainwreck.report.safe import line

HIGH, MEDIUM = 0.9, 0.7
"""Words for a confidence, as the seed document uses them: above 90% high, 70 to 90% medium, below low."""


def confidence_word(value: float) -> str:
    return "high" if value >= HIGH else "medium" if value >= MEDIUM else "low"


def confidence(value: float) -> str:
    """``high (0.93)``: never the number alone, never the word alone."""
    return f"{confidence_word(value)} ({value:.2f})"


def number(value: float) -> str:
    """Four significant digits at most, integers whole, thousands grouped; ``nan``, ``inf`` and ``-inf`` by name."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) < 1e7 else f"{value:.4g}"
    return f"{value:.4g}"


def step(value: float) -> str:
    """A step as it is logged: whole numbers ungrouped, so that they can be searched for."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def hedged(cause: Cause) -> str:
    """The title, marked as a possibility where the confidence is low: no headline claims more than its figure."""
    return ("Possibly: " if cause.confidence < MEDIUM else "") + line(cause.title, 300)


def place(where: Where) -> str:
    """A clickable ``path:line:column``, then what a path cannot say: cell, step, metric, module, rank, key."""
    parts = []
    if where.path:
        spot = line(where.path, 300)
        if where.line is not None:
            spot += f":{where.line}"
            if where.column is not None:
                spot += f":{where.column}"
        parts.append(spot)
    if where.cell is not None:
        parts.append(f"cell {where.cell}")
    if where.step is not None:
        parts.append(f"step {step(where.step)}")
    for name in ("metric", "key", "module"):
        value = getattr(where, name)
        if value:
            parts.append(line(value, 120))
    if where.rank is not None:
        parts.append(f"rank {where.rank}")
    return " · ".join(parts)


def cause_place(cause: Cause) -> str:
    """Where to fix, else where the first evidence with a place lies, else nothing."""
    if cause.location is not None:
        at = cause.location
        return line(at.path, 300) + (f":{at.line}" if at.line is not None else "")
    return next((place(e.where) for e in cause.evidence if e.where.path), "")


def seen_when(cause: Cause) -> str:
    """``from step 120`` where the evidence says when it began, else nothing."""
    steps = [e.where.step for e in cause.evidence if e.where.step is not None and math.isfinite(e.where.step)]
    return f"from step {step(min(steps))}" if steps else ""


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def leaders(result: Result) -> list[Cause]:
    """Causes that count, most important first: roots, then contributors."""
    return [c for role in ("root", "contributing") for c in result.root_causes if c.role == role]


def others(result: Result) -> list[Cause]:
    """The candidates that compete with a leader."""
    return [c for c in result.root_causes if c.role == "rival"]


def titles(result: Result) -> dict[str, str]:
    """Titles by id of the causes told, to name the members of a chain."""
    return {c.id: line(c.title, 200) for c in result.root_causes}


def deciding(cause: Cause, leader: Cause | None) -> str:
    """The observation that would decide between a rival and the leader, else the rival's own experiment."""
    if leader is not None:
        told = leader.tell_apart.get(cause.id) or cause.tell_apart.get(leader.id)
        if told:
            return line(told, 400)
    return line(cause.experiment, 400)


def excerpt_of(cause: Cause, excerpts: Sequence[Excerpt]) -> Excerpt | None:
    """The excerpt that shows this cause's place, else one that shows its evidence."""
    spots = [(cause.location.path, cause.location.line)] if cause.location else []
    spots += [(e.where.path, e.where.line) for e in cause.evidence if e.where.path and e.where.line]
    for path, number_ in spots:
        for item in excerpts:
            last = item.first_line + len(item.lines) - 1
            if item.path == path and number_ is not None and item.first_line <= number_ <= last:
                return item
    return None


def telling_chart(result: Result, cause: Cause | None = None) -> Chart | None:
    """The curve to show first: one that the leading cause's evidence marks, else the loss, else any."""
    charts = [c for c in result.charts if len(c.values) > 1]
    if cause is not None:
        signs = {e.sign for e in cause.evidence}
        metrics = {e.where.metric for e in cause.evidence}
        for chart in charts:
            if any(m.sign in signs for m in chart.marks) or chart.name in metrics:
                return chart
    return next((c for c in charts if c.role == "loss"), None) or next(iter(charts), None)


def telling_signs(result: Result) -> frozenset[str]:
    """The signs that speak for a cause that is told; what else was seen is a remark, no alarm."""
    return frozenset(e.sign for c in result.root_causes for e in c.evidence)


def looked_at(result: Result) -> str:
    """What could be judged, in words: the roles of the metrics and the other artefacts."""
    return ", ".join(line(name.replace("-", " "), 60) for name in result.observed)


def clear(result: Result) -> bool:
    """True if nothing at all speaks of trouble: no cause, no symptom, no finding above a suggestion, no bad end."""
    ended_badly = any(r.outcome in ("crashed", "killed") for r in result.runs)
    alarming = any(f.severity != "suggestion" for f in result.findings)
    return not (result.root_causes or result.symptoms or ended_badly or alarming or result.status == "unreadable")


def headline(result: Result) -> str:
    """The verdict in one sentence."""
    lead = leaders(result)
    if lead:
        return hedged(lead[0])
    if result.status == "unreadable":
        return "Nothing could be read"
    if result.findings and any(f.severity != "suggestion" for f in result.findings):
        return "No root cause established; there are findings"
    if result.root_causes:
        return "No cause stands out; candidates follow"
    if not clear(result):
        return "No known failure mode explains what was seen"
    return "Nothing wrong was seen in what was read"


def checked(result: Result) -> str:
    """The answer of ``check`` in one line: how much of what, or that nothing was found in how many files."""
    if not result.findings:
        return f"Nothing found in {plural(len(result.read), 'file')}"
    number_of = {s: sum(f.severity == s for f in result.findings) for s in ("critical", "warning", "suggestion")}
    told = ", ".join(f"{n} critical" if s == "critical" else plural(n, s) for s, n in number_of.items() if n)
    return f"{plural(len(result.findings), 'finding')}: {told}"


def counts(result: Result) -> str:
    """``1 critical, 2 warnings, no suggestions``."""
    total = result.summary()
    text = f"{total['critical']} critical, {plural(total['warning'], 'warning')}"
    text += f", {plural(total['suggestion'], 'suggestion')}"
    return text + (f", {plural(total['deviations'], 'deviation')}" if total["deviations"] else "")


def evidence_text(item: Evidence) -> str:
    """The sentence of one sighting, harmless and on one line."""
    return line(item.text, 400)
