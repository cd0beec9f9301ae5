"""Fit the confidence tables on the labelled corpus and write reasoning/calibration.json.

    python tools/calibrate.py ../shared [--write] [--only tune|held]

For each labelled case the first cause's raw probability is paired with whether it was right. Per class of evidence an
isotonic curve is fitted (pool adjacent violators), with a few pseudo-observations on the diagonal so that a class with
few cases stays near its raw value. The printed Brier score and calibration error are out of fold: cases are grouped by
base program and source repository, and no group is scored by a curve that saw it.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from holdout import held_back

from trainwreck.engine import diagnose
from trainwreck.reasoning import diagnose as reasoning

TARGET = Path(__file__).parent.parent / "src/trainwreck/reasoning/calibration.json"
CLASSES = ("direct", "circumstantial", "inferred")
FOLDS = 5
PSEUDO = 4.0
"""Weight of each of the nine pseudo-observations on the diagonal."""

Pair = tuple[str, str, float, bool]
"""Group, class, raw probability, right or not."""


def vocabulary(shared: Path) -> dict[str, str]:
    with (shared / "vocabulary.tsv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    return {name: r["id"] for r in rows for name in [r["id"], *filter(None, r["aliases"].split(","))]}


def pairs(shared: Path, only: str | None) -> list[Pair]:
    """One pair for each labelled case that gets a cause at all."""
    names = vocabulary(shared)
    chosen = (lambda i: True) if only is None else (lambda i: held_back(i) == (only == "held"))
    found: list[Pair] = []

    def add(group: str, accepted: Sequence[str], paths: Sequence[Path | str], stdin: bytes | None = None) -> None:
        result = diagnose(paths, stdin=stdin)
        roots = [c for c in result.root_causes if c.role != "consequence"]
        if roots:
            first = roots[0]
            wanted = {names.get(a, a) for a in accepted}
            classes = {e.cls for e in first.evidence}
            cls = next(c for c in CLASSES if c in classes)
            found.append((group, cls, first.confidence, first.id in wanted))

    for line in (shared / "corpus/errors.jsonl").open(encoding="utf-8"):
        case = json.loads(line)
        if chosen(case["id"]):
            text = f"{case['error']}\n\n{case['context']}\n".encode()
            add(case["source"].split("#")[0], [case["cause"], *case["also_accept"]], ["-"], text)
    for folder in sorted((shared / "corpus/repros").iterdir()):
        if (folder / "expected.json").exists() and chosen(folder.name):
            want = json.loads((folder / "expected.json").read_text())
            artefacts = [p for p in sorted(folder.iterdir()) if p.name != "expected.json"]
            add(folder.name.split("-")[0], [want["cause"], *want.get("also_accept", [])], artefacts)
    with (shared / "corpus/logs/MANIFEST.tsv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            cause = (row.get("cause") or "").strip()
            if cause and chosen(row["id"]):
                accepted = [cause] if cause != "undecidable" else []
                accepted += [
                    a.strip() for a in (row["also_accept"] or "").split(",") if cause != "undecidable" and a.strip()
                ]
                add(row["source"].split("@")[0], accepted, [shared / "corpus/logs" / row["id"]])
    return found


def isotonic(points: Sequence[tuple[float, float, float]]) -> tuple[list[float], list[float]]:
    """Pool adjacent violators over (x, y, weight); knots at the mean x of each block."""
    blocks: list[list[float]] = []
    for x, y, w in sorted(points):
        blocks.append([x * w, y * w, w])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][2] >= blocks[-1][1] / blocks[-1][2]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return [round(b[0] / b[2], 4) for b in blocks], [round(b[1] / b[2], 4) for b in blocks]


def fit(data: Sequence[Pair]) -> dict[str, dict[str, list[float]]]:
    curves = {}
    for cls in CLASSES:
        points = [(raw, float(ok), 1.0) for _, c, raw, ok in data if c == cls]
        points += [(x / 10, x / 10, PSEUDO) for x in range(1, 10)]
        raw, calibrated = isotonic(points)
        curves[cls] = {"raw": raw, "calibrated": calibrated}
    return curves


def predict(curves: dict[str, dict[str, list[float]]], cls: str, raw: float) -> float:
    from trainwreck.reasoning.calibrate import CEILING, interpolate

    return min(interpolate(raw, curves[cls]["raw"], curves[cls]["calibrated"]), CEILING[cls])  # type: ignore[index]


def errors(scored: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    """Brier score and expected calibration error over ten equal bins."""
    brier = sum((p - ok) ** 2 for p, ok in scored) / max(len(scored), 1)
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for p, ok in scored:
        bins[min(int(p * 10), 9)].append((p, ok))
    ece = sum(abs(sum(p for p, _ in b) - sum(ok for _, ok in b)) for b in bins.values()) / max(len(scored), 1)
    return brier, ece


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("shared", type=Path)
    options.add_argument("--write", action="store_true")
    options.add_argument("--only", choices=["tune", "held"])
    chosen = options.parse_args()
    reasoning.confidence = lambda raw, cls, maturity: raw  # type: ignore[assignment]  # the raw value itself
    data = pairs(chosen.shared, chosen.only)
    groups = sorted({group for group, *_ in data})
    fold = {group: i % FOLDS for i, group in enumerate(groups)}
    scored = []
    for number in range(FOLDS):
        curves = fit([p for p in data if fold[p[0]] != number])
        scored += [(predict(curves, cls, raw), ok) for group, cls, raw, ok in data if fold[group] == number]
    raw_brier, raw_ece = errors([(raw, ok) for _, _, raw, ok in data])
    brier, ece = errors(scored)
    counts = {cls: sum(c == cls for _, c, _, _ in data) for cls in CLASSES}
    print(f"cases {len(data)} {counts}, groups {len(groups)}")
    print(f"raw         Brier {raw_brier:.3f}  calibration error {raw_ece:.3f}")
    print(f"out of fold Brier {brier:.3f}  calibration error {ece:.3f}")
    if chosen.write:
        only = f" --only {chosen.only}" if chosen.only else ""
        made_by = f"python tools/calibrate.py ../shared --write{only}"
        table = {"made_by": made_by, "cases": counts, "curves": fit(data)}
        with tempfile.NamedTemporaryFile("w", dir=TARGET.parent, delete=False, encoding="utf-8") as stream:
            json.dump(table, stream, indent=1)
            stream.write("\n")
        Path(stream.name).replace(TARGET)
        TARGET.chmod(0o644)
        print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
