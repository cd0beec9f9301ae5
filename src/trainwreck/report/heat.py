"""What a recording knows by module, as the HTML report shows it: heat maps, a table, memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trainwreck.core.results import Cell, Heat, ModuleRow, Modules
from trainwreck.report import svg, words
from trainwreck.report.safe import line

SHOWN = ("grad_norm", "output", "update_ratio")
"""Heat maps of the page; the norms of weights stand in the table."""
MAX_ROWS = 32
"""Modules of one map and of the table: with these three maps stay below 60 kB."""


def view(modules: Modules) -> dict[str, Any]:
    """For the template."""
    heats = [_heat(heat) for heat in modules.heats if heat.quantity in SHOWN and heat.rows]
    chosen = _chosen([(row.name, _weight(row)) for row in modules.rows])
    table = [_row(row) for row in modules.rows if row.name in chosen]
    return {
        "run": line(modules.run, 200),
        "rank": modules.rank,
        "heats": heats,
        "table": table,
        "left": len(modules.rows) - len(table),
        "memory": [{"when": when, "peak": _bytes(peak), "last": _bytes(last)} for when, peak, last in modules.memory],
    }


def _heat(heat: Heat) -> dict[str, Any]:
    chosen = _chosen([(name, _interest(cells)) for name, cells in heat.rows])
    rows = [(name, cells) for name, cells in heat.rows if name in chosen]
    drawn = svg.shades(rows)
    return {
        "title": heat.title,
        "first": words.step(heat.first),
        "last": words.step(heat.last),
        "width": max(len(cells) for _, cells in rows),
        "left": len(heat.rows) - len(rows),
        "rows": [
            {"name": line(name, 120), "paths": sorted(paths.items()), "from": _end(cells), "to": _end(cells[::-1])}
            for (name, cells), paths in zip(rows, drawn, strict=True)
        ],
    }


def _chosen(rows: Sequence[tuple[str, float]]) -> set[str]:
    """The names of at most ``MAX_ROWS`` rows, those of most interest."""
    return {name for name, _ in sorted(rows, key=lambda row: -row[1])[:MAX_ROWS]}


def _interest(cells: Sequence[Cell]) -> float:
    """Infinite where a value broke or is zero, else the span in powers of ten."""
    if any(isinstance(c, str) or c == 0 for c in cells):
        return math.inf
    logs = [math.log10(c) for c in cells if isinstance(c, (int, float)) and c > 0]
    return max(logs) - min(logs) if logs else -1.0


def _weight(row: ModuleRow) -> float:
    return math.inf if row.nonfinite or row.gradient == 0 else row.gradient or 0.0


def _end(cells: Sequence[Cell]) -> str:
    return next((_number(c) for c in cells if c is not None), "")


def _row(row: ModuleRow) -> dict[str, Any]:
    numbers = (row.gradient, row.update_ratio, row.weights, row.output)
    return {
        "name": line(row.name, 120),
        "cells": [_number(v) for v in numbers],
        "zeros": f"{row.zeros:.0%}" if row.zeros is not None and math.isfinite(row.zeros) else "",
        "nonfinite": str(row.nonfinite) if row.nonfinite else "",
    }


def _number(value: Cell) -> str:
    return value if isinstance(value, str) else "" if value is None else f"{value:.3g}"


def _bytes(value: float) -> str:
    return f"{value / 2**20:,.0f} MiB" if math.isfinite(value) else "unknown"
