"""Text that was made, or that went wrong in a way, to hurt a parser: an answer in a moment, never an exception."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwreck.catalogue.load import catalogue
from trainwreck.core.source import from_bytes
from trainwreck.failures import witness as errors
from trainwreck.runs import witness as runs
from trainwreck.runs.console.read import MAX_CHARS, ConsoleReader, bounded

SIGNATURES = catalogue().signatures
MOMENT = 4.0
"""Seconds of processor time: what takes a tenth of one here took minutes."""
LONG = 60_000
CHAINED = (
    b'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    f(x)\nValueError: x\n\n'
    b"During handling of the above exception, another exception occurred:\n\n"
)
HOSTILE = {
    "one line of blanks": b" " * LONG + b"x\n",
    "one line of tabs": b"step" + b"\t" * LONG + b"loss\n",
    "one line of digits": b"step " + b"9" * LONG + b" loss " + b"1" * LONG + b"\n",
    "one line of an error's name": b"Error: " * (LONG // 7) + b"\n",
    "one line of quotes": b"{'loss': " * (LONG // 9) + b"\n",
    "one line of a table's frame": b"|" * LONG + b"\n" + b"+---" * (LONG // 4) + b"\n",
    "a chain of thousands of exceptions": CHAINED * 800,
    "tracebacks within messages": b'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: x\n'
    * 800,
    "frames within messages": b'  File "a.py", line 3, in f\nValueError: x\n' * 800,
    "a header without end": b"Traceback (most recent call last):\n" * 5000,
    "JSON nested without end": b'{"step": 1, "loss": ' + b"[" * 100_000,
    "a number of a million digits": b'{"step": 1, "loss": ' + b"9" * 1_000_000 + b"}\n",
    "a table of a hundred thousand columns": b",".join(b"c%d" % i for i in range(100_000)) + b"\n" + b"1," * 100_000,
    "YAML that multiplies itself": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"k%d: &k%d [%s]\n" % (i, i, b",".join([b"*k%d" % (i - 1) if i else b"*a"] * 9)) for i in range(12)),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["train.log", "metrics.json", "metrics.csv", "config.yaml"])
def test_hostile_text_is_read_in_a_moment(name: str, data: bytes) -> None:
    source = from_bytes(name, data)
    started = time.process_time()
    runs([source])
    errors([source], SIGNATURES)
    assert time.process_time() - started < MOMENT


@given(st.text(alphabet=" \t|,:=1a-", max_size=40), st.integers(1, 4000))
@settings(deadline=None, max_examples=60)
def test_a_repeated_piece_costs_a_moment(piece: str, times: int) -> None:
    text = (piece * times)[:LONG]
    started = time.process_time()
    ConsoleReader("x.log").line(1, text)
    assert time.process_time() - started < 1.0


@given(st.text(max_size=300), st.integers(1, 200))
def test_bounded_keeps_short_lines_and_both_ends_of_long_ones(piece: str, times: int) -> None:
    text = piece.replace("\n", "") * times
    short = bounded(text)
    assert len(short) <= MAX_CHARS
    if len(text) <= MAX_CHARS and " " * 200 not in text:
        assert short == text or any(c.isspace() for c in text)
    elif text and not any(c.isspace() for c in text):
        assert short[:100] == text[:100]
        assert short[-100:] == text[-100:]
