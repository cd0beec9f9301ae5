"""Reports in people's own words about data loading, memory, distribution, environment, serving, JAX and generation.

``reports_systems.tsv`` holds kind, cause and report (`` // `` stands for an empty line).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwreck.engine import diagnose

LINES = (Path(__file__).parent / "reports_systems.tsv").read_text(encoding="utf-8").splitlines()
ROWS = [line.split("\t") for line in LINES if line and not line.startswith("#")]


def causes(report: str) -> list[str]:
    result = diagnose(["-"], stdin=report.replace(" // ", "\n\n").encode())
    return [cause.id for cause in result.root_causes]


@pytest.mark.parametrize(
    ("kind", "first", "third"), [("full", 0.9, 0.97), ("short", 0.88, 0.95), ("loose", 0.85, 0.95)]
)
def test_cause_of_a_report_in_own_words(kind: str, first: float, third: float) -> None:
    told = [(cause, report, causes(report)) for which, cause, report in ROWS if which == kind]
    missed = [(cause, got[:3], report) for cause, report, got in told if got[:1] != [cause]]
    lost = [(cause, got[:3], report) for cause, report, got in told if cause not in got[:3]]
    assert len(missed) <= (1 - first) * len(told), missed
    assert len(lost) <= (1 - third) * len(told), lost


@pytest.mark.parametrize(
    "report",
    [
        "epoch 3: loss 0.41 accuracy 0.87, epoch 4: loss 0.38 accuracy 0.88",
        "how do I plot the training curve of two runs in one figure",
        "training finished after 3 epochs, validation accuracy 91%, all fine",
    ],
)
def test_ordinary_words_name_no_cause_with_confidence(report: str) -> None:
    result = diagnose(["-"], stdin=report.encode())
    assert not [c.id for c in result.root_causes if c.confidence >= 0.6]
