"""What is in a recording or a checkpoint, as plain data: modules by step, weights by module. Nothing is unpickled."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trainwreck.collect import collect
from trainwreck.core.errors import NothingReadable
from trainwreck.core.run import Run
from trainwreck.runs import by_module
from trainwreck.runs.signs import live_captures
from trainwreck.runs.witness import witness

MAX_HEADER = 100 << 20
"""Largest header of a safetensors file that is read; the format's own limit."""
SHADES = " ▁▂▃▄▅▆▇█"
WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
ADAM_BYTES = 12
"""Bytes a parameter of training state beyond the weights, with AdamW in float32: gradient and two moments."""


def inspect(path: Path) -> dict[str, Any]:
    """Facts of a recording's folder or of a ``.safetensors`` file. Raises NothingReadable if it is neither."""
    if path.suffix == ".safetensors":
        return checkpoint(path)
    runs = [run for run in witness(collect([path]).sources).runs if run.format == "trainwreck-recording"]
    if not runs:
        raise NothingReadable(f"{path}: no recording of trainwreck and no .safetensors file")
    return {"kind": "recording", "ranks": [recording(run) for run in runs]}


def recording(run: Run) -> dict[str, Any]:
    """Of one rank: a row for each module, and heat maps (module by stretch of steps) of what is known by module."""
    found = by_module.of_run(run)
    memory = run.series.get("memory")
    return {
        "rank": found.rank,
        "path": run.path,
        "outcome": run.outcome,
        "steps": run.last_step,
        "modules": {row.name: {k: v for k, v in asdict(row).items() if k != "name"} for row in found.rows},
        "maps": {
            heat.quantity: {"title": heat.title, "first": heat.first, "last": heat.last, "rows": dict(heat.rows)}
            for heat in found.heats
        },
        "memory": {"peak": max(memory.values), "last": memory.values[-1]} if memory and len(memory) else None,
        "memory_by_phase": {words: {"peak": peak, "last": last} for words, peak, last in found.memory},
        "failing": [c.get("step") for c in live_captures.failing(run)],
        "alike": live_captures.common(run),
        "events": [
            {"step": e.where.step, "kind": e.kind, "text": e.text, "module": e.where.module}
            for e in run.events
            if e.kind.startswith(("alarm-", "live-"))
        ],
    }


def checkpoint(path: Path) -> dict[str, Any]:
    """Tensors of a safetensors file: sizes, balance by part, memory, and which hold non-finite values or only zeros."""
    import numpy as np

    try:
        with path.open("rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            if length > MAX_HEADER:
                raise ValueError("its header is too long")
            header = json.loads(file.read(length))
        data: Any = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
        tensors = {n: t for n, t in header.items() if n != "__metadata__"}
        rows = [_tensor(np, name, facts, data) for name, facts in tensors.items()]
    except (OSError, ValueError, KeyError, TypeError, struct.error) as problem:
        reason = str(problem).splitlines()[0][:120] if str(problem) else type(problem).__name__
        raise NothingReadable(f"{path}: no whole safetensors file ({reason})") from None
    parts: dict[str, int] = {}
    for row in rows:
        part = ".".join(row["name"].split(".")[:2])
        parts[part] = parts.get(part, 0) + row["elements"]
    count = sum(row["elements"] for row in rows)
    size = sum(row["bytes"] for row in rows)
    return {
        "kind": "checkpoint",
        "path": str(path),
        "tensors": len(rows),
        "parameters": count,
        "bytes": size,
        "training_bytes": size + ADAM_BYTES * count,
        "parts": dict(sorted(parts.items(), key=lambda item: -item[1])),
        "nonfinite": [r["name"] for r in rows if r["nonfinite"]],
        "all_zero": [r["name"] for r in rows if r["all_zero"]],
    }


def _tensor(np: Any, name: str, facts: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """One tensor of the header with its values looked at, where numpy knows or can widen its kind."""
    begin, end = facts["data_offsets"]
    kind = facts["dtype"]
    if not 0 <= begin <= end <= len(data):
        raise ValueError(f"the bytes of {name} are not all there")
    row: dict[str, Any] = {"name": name, "bytes": end - begin, "nonfinite": 0, "all_zero": False}
    row["elements"] = math.prod(facts["shape"])
    raw = data[begin:end]
    if kind == "BF16":
        values = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    elif kind in ("F16", "F32", "F64"):
        values = raw.view({"F16": np.float16, "F32": np.float32, "F64": np.float64}[kind])
    else:
        return row
    row["nonfinite"] = int((~np.isfinite(values)).sum())
    row["all_zero"] = bool(len(values) and not values.any())
    return row


def text(facts: Mapping[str, Any]) -> list[str]:
    """The facts for a terminal, as lines of at most 110 characters."""
    return _checkpoint_text(facts) if facts["kind"] == "checkpoint" else _recording_text(facts["ranks"])


def _recording_text(ranks: Sequence[Mapping[str, Any]]) -> list[str]:
    lines: list[str] = []
    for rank in ranks:
        lines.append(f"{rank['path']}: rank {rank['rank']}, {rank['outcome']}, {rank['steps'] or 0:g} steps")
        for when, held in rank["memory_by_phase"].items():
            lines.append(f"memory {when}: peak {held['peak'] / 2**20:.0f} MiB, last {held['last'] / 2**20:.0f} MiB")
        lines += ["", f"{'module':40} {'gradient':>10} {'update':>10} {'weights':>10} {'output':>10} {'zeros':>7}"]
        for name, row in rank["modules"].items():
            cells = [_number(row[key]) for key in ("gradient", "update_ratio", "weights", "output")]
            share = f"{row['zeros']:7.0%}" if isinstance(row["zeros"], float) else f"{'':7}"
            broken = f"  {row['nonfinite']} not finite" if row["nonfinite"] else ""
            lines.append(f"{name[-40:]:40} {' '.join(f'{c:>10}' for c in cells)} {share}{broken}".rstrip())
        for heat in rank["maps"].values():
            lines += [
                "",
                f"{heat['title']} by module, steps {heat['first']:g} to {heat['last']:g} (log scale, x: not finite)",
            ]
            lines += [f"{name[-40:]:40} {row}" for name, row in _shaded(heat["rows"]).items()]
        if rank["failing"]:
            lines += ["", f"captured steps: {', '.join(f'{s:g}' for s in rank['failing'])}"]
            lines += [f"  {text}" for text in rank["alike"]]
        lines += ["", *(f"step {e['step'] or 0:g}: {e['text']}" for e in rank["events"])]
    return lines


def _shaded(rows: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Values as blocks on one logarithmic scale for all rows."""
    logs = [math.log10(v) for row in rows.values() for v in row if isinstance(v, float) and v > 0]
    low, high = (min(logs), max(logs)) if logs else (0.0, 0.0)

    def shade(value: Any) -> str:
        if value is None:
            return " "
        if isinstance(value, str):
            return "x"
        if value <= 0:
            return "·"
        return SHADES[1 + round((math.log10(value) - low) / max(high - low, 1e-9) * (len(SHADES) - 2))]

    return {name: "".join(map(shade, row)) for name, row in rows.items()}


def _checkpoint_text(facts: Mapping[str, Any]) -> list[str]:
    count = facts["parameters"]
    lines = [
        f"{facts['path']}: {facts['tensors']} tensors, {count:,} parameters, {facts['bytes'] / 2**20:.1f} MiB",
        f"to train with AdamW in float32: about {facts['training_bytes'] / 2**20:.0f} MiB, activations not counted",
        "",
    ]
    for name, elements in list(facts["parts"].items())[:24]:
        lines.append(f"{name[-50:]:50} {elements:>14,} {elements / max(count, 1):6.1%}")
    for key, words in (("nonfinite", "hold NaN or infinity"), ("all_zero", "hold only zeros")):
        if facts[key]:
            lines += ["", f"{len(facts[key])} tensors {words}: {', '.join(facts[key][:8])}"]
    return lines


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value or "")
