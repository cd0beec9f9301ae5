"""Reports in people's words about trainers, fine-tuning, adapters, checkpoints, loops and evaluation find their cause.

``reports_training.tsv``: our own texts, an error or an observation and a line of context, as somebody would put them
into an issue, with the ids that are right. The first hundred were written beside the signatures, the others before
their answers were seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwreck.core.results import Cause
from trainwreck.engine import diagnose
from trainwreck.reasoning.resemble import SIGN as RESEMBLES

LINES = (Path(__file__).parent / "reports_training.tsv").read_text(encoding="utf-8").splitlines()[1:]
REPORTS = [(wanted, f"{error}\n\n{context}\n") for wanted, error, context in (line.split("\t") for line in LINES)]

HEALTHY = [
    "step 100 loss 2.31 lr 0.0003 grad_norm 1.02\nstep 200 loss 2.12 lr 0.0003 grad_norm 0.98\n",
    "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622\n<All keys matched successfully>\n",
    "0 Non-trainable params\nTrainable params: 1.2 M\nNon-trainable params: 0\nTotal params: 1.2 M\n",
]


def causes(text: str) -> list[Cause]:
    return list(diagnose(["-"], stdin=text.encode()).root_causes)


def hits(wanted: str, text: str, places: int) -> bool:
    return bool(set(wanted.split()) & {cause.id for cause in causes(text)[:places]})


@pytest.mark.parametrize(("wanted", "text"), REPORTS, ids=[f"{n}-{w}" for n, (w, _) in enumerate(REPORTS, 2)])
def test_report_finds_its_cause_among_the_first_three(wanted: str, text: str) -> None:
    assert hits(wanted, text, 3)


def test_most_reports_name_the_cause_first() -> None:
    missed = [text for wanted, text in REPORTS if not hits(wanted, text, 1)]
    assert len(missed) <= 0.08 * len(REPORTS), missed


@pytest.mark.parametrize("text", HEALTHY)
def test_a_healthy_log_gives_no_sign(text: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(text, encoding="utf-8")
    assert diagnose([path]).root_causes == []
    assert {e.sign for cause in causes(text) for e in cause.evidence} <= {RESEMBLES}
