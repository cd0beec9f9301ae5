"""Diffusion models, the two ends of their chain: what is left of the data at the last level, one draw of noise for a
whole batch, and whether samples are taken for what the training data were."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.denoising import denoisers, mixture
from trainwreck.code.rehearsal.questions.noising import end_of, levels
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core
from trainwreck.code.rehearsal.questions.terms import number_of

SPREADS = frozenset(["expand", "repeat", "expand_as", "tile", "broadcast_to", "repeat_interleave"])
LEFT = 0.3
"""Share of the variance of the data at the last level; DDPM (arXiv:2006.11239) leaves 4e-5 of it. Short schedules for
small data leave a fifth, and their samples are hardly worse for it."""
SQUARES = 0.15
"""Squares of the two factors that differ from one by less than this belong to a schedule that keeps the variance."""
MOST = 1.0
"""From as much of the data as of the noise on, the noise stays small at all times, which is another fault."""
GREY = 255
MAX_CHAIN = 30


def signal_left(run: Rehearsing) -> Iterator[Answer]:
    """Samples begin as noise alone, and the network never saw less than a good part of the data."""
    for found in denoisers(run):
        known = levels(found)
        sampled = any(e.name == "forward" and e.subject is found.module and not e.grad_mode and e.turns
                      for e in run.tape)  # fmt: skip
        if known is None or not sampled:
            continue
        shares = [s * s / n / n if n else math.inf for s, n in zip(known.signal, known.noise, strict=True)]
        preserved = all(abs(s * s + n * n - 1) < SQUARES for s, n in zip(known.signal, known.noise, strict=True))
        least = min(shares)
        place = end_of(run, known) or known.node.place
        if preserved and least / (1 + least) > LEFT and least < MOST and place is not None:
            left = f"{least / (1 + least):.0%} of the data's variance"
            text = f"{left} is left at the last level, and samples begin as noise alone"
            yield Answer(place, text, tuple(p for p in (known.node.place,) if p is not None), severity="warning")
            return


def one_draw(run: Rehearsing) -> Iterator[Answer]:
    """One draw of noise is spread over all samples of a batch."""
    for found in denoisers(run):
        made = mixture(found.given)
        if made is None:
            continue
        data, noise = made
        sizes, rows = noise.shape.dims, data.shape.dims
        if noise.shape.open or len(sizes) < 2 or sizes[0] != 1 or (not data.shape.open and rows[:1] == (1,)):
            continue
        inside = ancestors(found.given.args[0])
        spread = next((n for n in inside if n.op in SPREADS and any(c is noise for c in core(n))), None)
        place = (spread or noise).place
        if spread is not None and place is not None:
            yield Answer(place, "all samples of a batch share one draw of noise", (found.given.place or place,))
            return


# ---------------------------------------------------------------------- from 0 to 1, or from -1 to 1
def other_range(run: Rehearsing) -> Iterator[Answer]:
    """The data lie between 0 and 1, and samples are taken for -1 to 1; or the other way round."""
    for found in denoisers(run):
        made = mixture(found.given)
        span = _span(made[0]) if made is not None else None
        if span is None or made is None:
            continue
        low, place = span
        answers = {id(p) for e in run.tape if e.name == "forward" and e.subject is found.module and not e.grad_mode
                   for p in parts(e.result)}  # fmt: skip
        for node in run.nodes:
            taken = _taken_for(node)
            if taken is None or taken == low or node.place is None:
                continue
            if any(id(n) in answers for n in ancestors(node.inputs[0])):
                words = ("0 to 1", "-1 to 1") if low == 0 else ("-1 to 1", "0 to 1")
                text = f"the training data go from {words[0]}, and samples are taken for {words[1]}"
                here, other = (place, node.place) if low == 0 else (node.place, place)
                yield Answer(here, text, (other,))
                return


def _span(data: Node) -> tuple[int, Place] | None:
    """Where grey levels that were scaled begin: 0 for ``x / 255``, -1 for ``x / 127.5 - 1``; and where that is."""
    at: Value = data
    shifted, scale, place = 0.0, 1.0, None
    for _ in range(MAX_CHAIN):
        if not isinstance(at, Node) or not at.inputs:
            break
        number = next((n for i in at.inputs[1:2] if (n := number_of(i)) is not None), None)
        if at.op in ("sub", "add", "mul", "div") and number is not None:
            if at.op in ("sub", "add"):
                shifted += (number if at.op == "add" else -number) * scale
            else:
                scale *= number if at.op == "mul" else 1 / number if number else 1.0
            place = place or at.place
            at = at.inputs[0]
        elif at.op in STRUCTURE | {"batch", "either", "stack"}:
            at = next(iter(parts(at.inputs)), None)
        else:
            break
    whole = scale * GREY
    if place is None:
        return None
    if abs(whole - 1) < SLIGHT and shifted == 0:
        return 0, place
    return (-1, place) if abs(whole - 2) < SLIGHT and shifted == -1 else None


SLIGHT = 0.02


def _taken_for(node: Node) -> int | None:
    """What the smallest value of a sample is taken for: -1 in ``x.clamp(-1, 1) + 1``, 0 in ``x.clamp(0, 1) * 255``."""
    if node.op not in ("add", "mul") or len(node.inputs) < 2 or not isinstance(node.inputs[0], Node):
        return None
    number, inner = number_of(node.inputs[1]), node.inputs[0]
    if inner.op not in ("clamp", "clip", "clamp_"):
        return None
    ends = [number_of(v) for v in (inner.get("min", 1), inner.get("max", 2))]
    if node.op == "add" and number == 1 and ends == [-1, 1]:
        return -1
    return 0 if node.op == "mul" and number == GREY and ends == [0, 1] else None


__all__ = ["one_draw", "other_range", "signal_left"]
