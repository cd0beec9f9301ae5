"""Mutate real artefacts and feed them to every witness: nothing may raise, nothing may hang.

    TRAINWRECK_FUZZ=100000 python tools/fuzz.py [--seed N] [--workers 2]

Seeds are the project's own cases, examples and sources, and the developer corpus where it is present. A failing input
is written to the working directory and named.
"""

from __future__ import annotations

import random
import signal
import traceback
from collections import Counter
from pathlib import Path

from fuzz_run import drive

HERE = Path(__file__).resolve().parent.parent
SHARED = HERE.parent / "shared"
MAX_SEED = 60_000
SLOW = 5
"""Seconds after which an input counts as a hang."""

TOKENS = (
    b"nan", b"inf", b"-inf", b"NaN", b"1e999", b"-0", b"\x00", b"\xff\xfe", b"\r", b"\n", b"\x1b[31m", b"{", b"}",
    b"[", b"]", b'"', b"'", b",", b";", b"\t", b":", b"|", b"loss", b"step", b"epoch",
    b"Traceback (most recent call last):\n", b'  File "train.py", line 3, in f\n', b"RuntimeError: ", b"[rank3]: ",
    b"99999999999999999999", b"%", b"\\",
    b"&a *a", b"!!python/object", b"# trainwreck: ignore", b"def f(", b"lambda", b"    ", b"\xe2\x80\xae",
)  # fmt: skip


def seeds() -> list[tuple[str, bytes]]:
    """(name, content) of everything that is like what users give us, cut to a size that mutates quickly."""
    roots = [HERE / "tests", HERE / "examples", HERE / "src"]
    if SHARED.is_dir():
        roots += [SHARED / "corpus/logs", SHARED / "corpus/repros", SHARED / "cases"]
    found = []
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.stat().st_size and "__pycache__" not in path.parts:
                with path.open("rb") as stream:
                    found.append((path.name, stream.read(MAX_SEED)))
    return found


def mutate(data: bytes, others: list[tuple[str, bytes]], rng: random.Random) -> bytes:
    """A few random edits: flips, cuts, repeats, splices with another seed, tokens that parsers stumble over."""
    out = bytearray(data[: rng.choice((200, 2000, 8000, MAX_SEED))])
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(7)
        if kind == 0 and out:
            out[at % len(out)] = rng.randrange(256)
        elif kind == 1:
            out[at:at] = rng.choice(TOKENS) * rng.choice((1, 1, 1, 3, 200))
        elif kind == 2:
            del out[at : at + rng.choice((1, 10, 200))]
        elif kind == 3:
            piece = bytes(out[at : at + rng.choice((5, 80, 500))])
            out[at:at] = piece * rng.choice((1, 2, 20))
        elif kind == 4:
            out = out[:at]
        elif kind == 5:
            other = rng.choice(others)[1]
            start = rng.randrange(len(other))
            out[at:at] = other[start : start + rng.choice((20, 300, 2000))]
        else:
            lines = bytes(out).split(b"\n")
            rng.shuffle(lines)
            out = bytearray(b"\n".join(lines))
    return bytes(out[:MAX_SEED])


def work(job: tuple[int, int]) -> tuple[int, Counter[str], list[str]]:
    """Run ``count`` mutations from one seed number; (runs, formats seen, failures)."""
    number, count = job
    from trainwreck.catalogue.load import catalogue
    from trainwreck.code import build
    from trainwreck.code import witness as static
    from trainwreck.core.source import from_bytes
    from trainwreck.failures import witness as errors
    from trainwreck.runs import readers
    from trainwreck.runs import witness as runs

    rng = random.Random(number)
    pool = seeds()
    signatures = catalogue().signatures
    formats: Counter[str] = Counter()
    failures: list[str] = []

    def alarm(*_: object) -> None:
        raise TimeoutError(f"no answer in {SLOW} s")

    signal.signal(signal.SIGALRM, alarm)
    for index in range(count):
        name, data = rng.choice(pool)
        mutated = mutate(data, pool, rng)
        source = from_bytes(name, mutated)
        signal.alarm(SLOW)
        try:
            if name.endswith((".py", ".ipynb", ".sh")):
                program = build([source])
                static(program)
            reader = readers.reader_for(source)
            formats[reader.FORMAT if reader else "-"] += 1
            runs([source])
            errors([source], signatures)
        except Exception:
            kept = Path(f"fuzz-failure-{number}-{index}-{name}")
            kept.write_bytes(mutated)
            failures.append(f"{kept}\n{traceback.format_exc(limit=-4)}")
        finally:
            signal.alarm(0)
    return count, formats, failures


if __name__ == "__main__":
    raise SystemExit(drive(__doc__, work, 500, "inputs"))
