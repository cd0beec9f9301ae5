"""The files of ``--artifacts DIR``: a picture of the curves and a page on the gradients, from the charts alone."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainwreck.core.errors import TrainwreckError
from trainwreck.core.redact import masked
from trainwreck.core.results import Chart, Result
from trainwreck.report import words
from trainwreck.report.markdown import escape
from trainwreck.report.safe import line

PLOTTED = ("loss", "eval-loss", "grad-norm", "lr", "loss-scale", "reward", "kl", "entropy")
MAX_PANELS = 4


def write(result: Result, directory: Path) -> Mapping[str, str]:
    """Write what the charts allow into ``directory`` and return name to path, under the names of the skill.

    Raises TrainwreckError where the directory cannot be written; without matplotlib there is no picture and one
    sentence on stderr.
    """
    result = masked(result)
    written: dict[str, str] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        page = directory / "gradient_analysis.md"
        page.write_text(gradient_analysis(result), encoding="utf-8")
        written["gradient_analysis"] = page.as_posix()
        picture = directory / "loss_plot.png"
        if _plot(panels(result), picture):
            written["loss_visualization"] = picture.as_posix()
    except OSError as problem:
        raise TrainwreckError(
            f"{directory}: cannot be written ({problem.strerror}); name another directory"
        ) from problem
    return written


def panels(result: Result) -> list[Chart]:
    """The charts worth a panel: losses first, then what drives them; the marked ones before others of their role."""
    known = [c for c in result.charts if c.role in PLOTTED and any(math.isfinite(v) for v in c.values)]
    first: dict[str, Chart] = {}
    for chart in sorted(known, key=lambda c: (PLOTTED.index(c.role or ""), not c.marks)):
        first.setdefault(chart.role or "", chart)
    return list(first.values())[:MAX_PANELS]


def gradient_analysis(result: Result) -> str:
    """A page in Markdown: what the gradient norms did, and what was seen in them."""
    norms = [c for c in result.charts if c.role == "grad-norm"]
    rows = ["# Gradient analysis", ""]
    if not norms:
        rows += ["No gradient norm was logged, so nothing can be said about the gradients.", ""]
        rows += ["To have it next time: log the norm that clipping returns, `torch.nn.utils.clip_grad_norm_(…)`,"]
        rows += ["or set `logging_steps` of the Trainer, which logs `grad_norm` by itself.", ""]
    for chart in norms:
        rows += [f"## {escape(line(chart.name, 80))} ({escape(line(chart.run, 200))})", ""]
        rows += ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in _statistics(chart)), ""]
        rows += _marks(chart)
    related = [
        f"- {escape(words.place(e.where))}: {escape(words.evidence_text(e))}"
        for cause in result.root_causes
        for e in cause.evidence
        if "grad" in e.sign
    ]
    if related:
        rows += ["## Evidence in the diagnosis", "", *dict.fromkeys(related), ""]
    lead = words.leaders(result)
    if lead:
        rows += ["## Diagnosis", "", f"{escape(line(lead[0].title))} (`{lead[0].id}`), confidence "]
        rows[-1] += words.confidence(lead[0].confidence) + "."
        rows.append("")
    return "\n".join(rows)


def _statistics(chart: Chart) -> list[tuple[str, str]]:
    finite = [v for v in chart.values if math.isfinite(v)]
    broken = [s for s, v in zip(chart.steps, chart.values, strict=False) if not math.isfinite(v)]
    rows = [
        (
            f"points shown ({chart.unit})",
            f"{len(chart.values)}, {words.step(chart.steps[0])} to {words.step(chart.steps[-1])}",
        )
    ]
    if finite:
        tenth = max(1, len(finite) // 10)
        rows += [
            (
                "smallest, median, largest",
                ", ".join(map(words.number, (min(finite), statistics.median(finite), max(finite)))),
            ),
            ("median of the first tenth", words.number(statistics.median(finite[:tenth]))),
            ("median of the last tenth", words.number(statistics.median(finite[-tenth:]))),
            ("exactly zero", words.plural(sum(v == 0 for v in finite), "point")),
        ]
    text = f"{words.plural(len(broken), 'point')}" + (
        f", first at {chart.unit} {words.step(broken[0])}" if broken else ""
    )
    return [*rows, ("not finite", text)]


def _marks(chart: Chart) -> list[str]:
    if not chart.marks:
        return ["Nothing unusual was seen in it.", ""]
    seen = [f"- {chart.unit} {words.step(m.step)}: {escape(line(m.text, 300))} (`{m.sign}`)" for m in chart.marks]
    return ["What was seen in it:", "", *seen, ""]


def _plot(charts: Sequence[Chart], path: Path) -> bool:
    """Write the picture; False where there is nothing to draw or nothing to draw with."""
    if not charts:
        return False
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        print("no loss_plot.png: matplotlib is not installed; pip install 'trainwreck[plot]'", file=sys.stderr)
        return False
    figure = Figure(figsize=(9, 2.2 * len(charts) + 0.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    for number, chart in enumerate(charts):
        _panel(figure.add_subplot(len(charts), 1, number + 1), chart)
    figure.savefig(path, format="png", metadata={"Software": None})
    return True


def _panel(axes: Any, chart: Chart) -> None:
    finite = [v for v in chart.values if math.isfinite(v)]
    shown = [v if math.isfinite(v) and abs(v) < 1e300 else math.nan for v in chart.values]
    axes.plot(chart.steps, shown, color="#1f5fa8", linewidth=1.3)
    low, high = min(finite), max(finite)
    if low > 0 and high / low > 50:
        axes.set_yscale("log")
    broken = [s for s, v in zip(chart.steps, chart.values, strict=False) if not math.isfinite(v) and math.isfinite(s)]
    if broken:
        axes.plot(
            broken, [0.04] * len(broken), "x", color="#b3261e", markersize=5, transform=axes.get_xaxis_transform()
        )
        axes.text(broken[0], 0.1, " not finite", color="#b3261e", fontsize=8, transform=axes.get_xaxis_transform())
    for mark in chart.marks:
        if math.isfinite(mark.step):
            axes.axvline(mark.step, color="#b3261e", linewidth=0.9, linestyle="--")
    # A dollar sign would start mathematics.
    axes.set_ylabel(line(chart.name, 40).replace("$", r"\$"), fontsize=9)
    axes.set_xlabel(chart.unit, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
