"""Arbitrary and mutilated input: no exception, no hang, and every signature of the catalogue in bounded time."""

from __future__ import annotations

import re
import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainwreck.catalogue.load import catalogue
from trainwreck.core.failure import Failure
from trainwreck.core.source import from_bytes
from trainwreck.failures import witness
from trainwreck.failures.signatures import compile_signatures, in_failure, in_report

KNOWN = list(catalogue().signatures)
PIECES = [
    "Traceback (most recent call last):",
    "Original Traceback (most recent call last):",
    '  File "/a/b.py", line 3, in f',
    '  File "<ipython-input-1-x>", line 3',
    "    x = y",
    "        ^^^^",
    "RuntimeError: Caught IndexError in DataLoader worker process 0.",
    "IndexError: Target 5 is out of bounds.",
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
    "ValueError                       Traceback (most recent call last)",
    "---> 11 loss.backward()",
    "Cell In[5], line 3",
    '"""',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "=====",
    "Fatal Python error: Segmentation fault",
    "Current thread 0x00 (most recent call first):",
    "/a/b.py:33: RuntimeWarning: invalid value encountered in divide",
    "Killed",
    "step 3 loss 0.5",
    "",
    "E   ValueError: x",
    "t.py:3: ValueError",
]
PREFIXES = ["", "[rank1]: ", "  | ", "> ", "2024-01-01 00:00:00 ERROR ", "\x1b[31m", "\r", "    "]
SLOWEST = 2.0
"""Seconds for one signature over a text made against it; the work is a few milliseconds where nothing is wrong."""


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=3000))
def test_any_bytes(data: bytes) -> None:
    witness([from_bytes("x.log", data), from_bytes("<stdin>", data)], KNOWN)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(PREFIXES), st.sampled_from(PIECES)), max_size=40))
def test_shuffled_pieces_of_reports(pieces: list[tuple[str, str]]) -> None:
    text = "\n".join(prefix + piece for prefix, piece in pieces)
    seen = witness([from_bytes("x.log", text.encode())], KNOWN)
    for failure in seen.failures:
        assert failure.type or failure.frames
        assert 1 <= (failure.line or 1) <= len(pieces) + 1


def test_no_signature_is_slow_on_text_made_against_it() -> None:
    for signature in compile_signatures(KNOWN):
        base = " ".join(signature.contains) or "nan"
        words = re.sub(r"\\.|[\[\](){}?*+|^$.]", " ", " ".join([signature.pattern, *signature.all]))
        texts = [base + " " + filler * 3000 for filler in ("a", "1 ", "(1, ", "torch.", "x y ")]
        texts += [(base + " " + words[:40] + " ") * 100]
        started = time.process_time()
        for text in texts:
            list(in_report(text, [signature]))
            list(in_failure(Failure(signature.type[0] if signature.type else "RuntimeError", text), [signature]))
        assert time.process_time() - started < SLOWEST, signature.sign
