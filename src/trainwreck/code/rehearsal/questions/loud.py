"""Data of a range beside which the noise of a diffusion is nothing."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.denoising import denoisers, signal_of
from trainwreck.code.rehearsal.questions.roles import STRUCTURE

LOUDEST = 100
"""Data up to this number and more are grey levels of 8 bit; noise has a deviation of 1."""


def unscaled(run: Rehearsing) -> Iterator[Answer]:
    """Unit noise is added to data of a range of 8 bit."""
    for found in denoisers(run):
        signal = signal_of(found)
        at: Value = signal
        for _ in range(12):
            if not isinstance(at, Node):
                break
            if at.op == "randint" and at.place is not None:
                highest = [i for i in (*at.inputs[:2], at.options.get("high")) if isinstance(i, int)]
                if highest and max(highest) >= LOUDEST:
                    text = "the data are not scaled: beside values up to 255 the noise is nothing"
                    yield Answer(at.place, text, (found.noises[0].place,) if found.noises[0].place is not None else ())
                    return
            if at.op not in STRUCTURE and at.op not in ("batch", "element", "getitem", "float", "to", "permute"):
                break
            at = next(iter(parts(at.inputs[0])), None) if at.inputs else None
