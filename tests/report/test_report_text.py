"""What the reports for people say, in which order, and how much room they take."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import report_samples as samples

from trainwreck import report
from trainwreck.core.results import Chart, Mark, Result
from trainwreck.report import screen, words
from trainwreck.report.sparkline import sparkline

KINDS = {"silent": samples.silent, "crash": samples.crash, "healthy": samples.healthy, "partial": samples.partial}


def full(result: Result, **options: object) -> str:
    return report.render(result, "full", **options)


def places(text: str, *parts: str) -> list[int]:
    found = [text.index(part) for part in parts]
    return found


def test_the_verdict_comes_first_and_then_evidence_chain_fix_and_the_rest() -> None:
    text = full(samples.silent())
    assert text.splitlines()[0] == "CRITICAL   Learning rate too high"
    order = places(
        text, "confidence high (0.93)", "Evidence", "Curve", "Chain", "Why", "Fix", "Expect", "Verify", "If not",
        "Or  ", "decides:", "Not seen", "Suspects", "Symptoms", "trainwreck explain lr-too-high",
    )  # fmt: skip
    assert order == sorted(order)


@pytest.mark.parametrize("kind", KINDS)
def test_a_typical_answer_fits_on_one_screen(kind: str) -> None:
    lines = full(replace(KINDS[kind](), suspects=())).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test_places_are_whole_words_that_a_terminal_can_click() -> None:
    for width in (40, 60, 100):
        text = full(samples.silent(), width=width)
        assert "runs/lm-350m/trainer_state.json:1180" in text.split()
        assert "configs/lm-350m.yaml:14" in text.split()


def test_a_healthy_run_says_what_was_read_and_looked_at() -> None:
    text = full(samples.healthy())
    assert text.startswith("NO CAUSE   Nothing wrong was seen")
    assert "runs/ok/trainer_state.json" in text
    assert "completed, last step 2000" in text
    assert "Looked at  loss, lr, metrics" in text


def test_a_partial_answer_says_so_and_names_what_was_unreadable() -> None:
    text = full(samples.partial())
    assert "partial: 1 input could not be read" in text
    assert "truncated record at byte 4096" in text
    assert text.startswith("CRITICAL   Possibly: Learning rate too high")
    assert "confidence low (0.48)" in text
    assert "To be sure" in text


def test_severity_and_verdicts_are_words_and_colour_changes_no_letter() -> None:
    import re

    plain, coloured = full(samples.silent()), full(samples.silent(), color=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [row.rstrip() for row in stripped.splitlines()] == plain.splitlines()


def test_without_unicode_everything_is_ascii() -> None:
    for make in KINDS.values():
        assert full(make(), unicode=False).isascii()


def test_an_empty_answer_is_still_an_answer() -> None:
    for form in report.FORMATS:
        # No annotations is an answer too.
        assert report.render(Result(status="nothing_found"), form) or form == "github"


class Stream(io.StringIO):
    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self.terminal, self.code = terminal, encoding

    def isatty(self) -> bool:
        return self.terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.code


@pytest.mark.parametrize(
    ("terminal", "asked", "env", "expected"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"TERM": "dumb"}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"NO_COLOR": ""}, True),
        (False, "auto", {"FORCE_COLOR": "1"}, True),
        (False, "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (False, "always", {"NO_COLOR": "1"}, True),
        (True, "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_follows_the_published_rules(terminal: bool, asked: str, env: dict[str, str], expected: bool) -> None:
    assert screen.options(Stream(terminal), asked, env)["color"] is expected


def test_a_stream_that_is_not_utf8_gets_ascii() -> None:
    assert screen.options(Stream(False, "ascii"))["unicode"] is False
    assert screen.options(Stream(False, "UTF-8"))["unicode"] is True


def test_the_sparkline_marks_evidence_and_missing_numbers() -> None:
    nan = float("nan")
    chart = Chart("loss", "loss", "step", "run", [float(i) for i in range(24)], [1.0] * 12 + [2.0] * 6 + [nan] * 6,
                  [Mark(18, "nan", "loss-nonfinite")])  # fmt: skip
    drawn = sparkline(chart)
    assert drawn is not None
    assert drawn.blocks == "▁" * 12 + "█" * 6 + "x" * 6
    assert drawn.marks.index("!") == 18
    assert "last nan" in drawn.figures


@pytest.mark.parametrize("values", [[1e308, -1e308, 5.0], [float("inf"), 1.0, 2.0], [5e-324, 1.0, 1e300], [0.0, 0.0]])
def test_the_sparkline_takes_every_number(values: list[float]) -> None:
    drawn = sparkline(Chart("x", None, "step", "run", [float(i) for i in range(len(values))], values))
    assert drawn is not None
    assert len(drawn.blocks) == len(drawn.blocks.strip())


def test_numbers_have_at_most_four_significant_digits_and_steps_are_whole() -> None:
    assert [words.number(v) for v in (0.0001234567, 3.14159, 1234567.0, 1e20, float("-inf"))] == [
        "0.0001235", "3.142", "1,234,567", "1e+20", "-inf",
    ]  # fmt: skip
    assert words.step(24590.0) == "24590"


def test_concise_is_one_line_an_item_in_the_problem_matcher_form() -> None:
    import re

    for make in KINDS.values():
        for row in report.render(make(), "concise").splitlines():
            assert re.match(r"^[^\s:]+:\d+:\d+: [a-z0-9-]+ (critical|warning|suggestion) (-|[01]\.\d\d) \S", row) or (
                row.startswith("trainwreck: nothing wrong was seen")
            )


def test_markdown_has_the_verdict_the_fix_and_the_curve() -> None:
    text = report.render(samples.silent(), "markdown")
    assert text.startswith("## Learning rate too high\n")
    assert "- **Fix:** Lower the peak learning rate" in text
    assert "```text\n█" in text
    assert "`configs/lm-350m.yaml:14`" in text
