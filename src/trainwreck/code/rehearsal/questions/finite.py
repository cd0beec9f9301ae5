"""Finite scalar quantisation: into how many numbers does each channel of a code fall, and how many should there be?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import RAW, bounds, trained, users
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown

LEVELS = pattern(r"levels?\b|\bfsq\b|finite_?scalar", re.IGNORECASE)
ROUNDED = frozenset(["round", "round_", "floor"])
WIDE = 60.0
"""Outputs of the encoder between its negative and itself reach every number that a bounded code can have."""
STEPS = 4801
SLACK = 1
"""One number more or less: what a bound makes of an even count is a matter of taste."""


def levels_missed(run: Rehearsing) -> Iterator[Answer]:
    """A bounded code falls into more or fewer numbers than its levels say, or it is not bounded at all."""
    known = _levels(run)
    if not known:
        return
    for node in _roundings(run):
        inner = node.inputs[0]
        source = next((n for n in ancestors(inner) if n.op in RAW), None)
        if source is None or not isinstance(inner, Node):
            continue
        place = _before(inner, source) or node.place
        if place is None:
            continue
        if bounds(inner).free or inner is source:
            text = "nothing bounds these values before they are rounded: they do not fall into the levels that are set"
            yield Answer(place, text, (node.place,) if node.place is not None else ())
            return
        counts = _counts(node, source, len(known))
        if counts is None or len(counts) != len(known):
            continue
        apart = [(c, w) for c, w in zip(counts, known, strict=True) if abs(c - w) > SLACK]
        if apart:
            text = f"a channel of {apart[0][1]:g} levels falls into {apart[0][0]} numbers here"
            yield Answer(place, text, (node.place,) if node.place is not None else ())
            return


def _roundings(run: Rehearsing) -> Iterator[Node]:
    """Where a code is rounded that a decoder learns from."""
    inside = {id(n) for n in trained(run)}
    table = users(run)
    for node in run.nodes:
        if node.op not in ROUNDED or not node.inputs or node.place is None:
            continue
        level = [node]
        for _ in range(4):
            level = [u for n in level for u in table.get(id(n), ())]
            if any(id(u) in inside for u in level):
                yield node
                break


def _levels(run: Rehearsing) -> list[float]:
    """The numbers of levels of a quantiser: a list of whole numbers under such a name."""
    for obj in run.objects:
        if obj.cls is None:
            continue
        for name, value in obj.attributes.items():
            if isinstance(name, str) and LEVELS.search(name) and (found := _numbers(value)):
                return found
    return []


def _numbers(value: Value) -> list[float]:
    for _ in range(6):
        if isinstance(value, Items | tuple):
            items = list(value) if isinstance(value, tuple) else value.items
            whole = [i for i in items if isinstance(i, int | float) and not isinstance(i, bool) and 2 <= i <= 64]
            return [float(i) for i in whole] if len(whole) == len(items) and len(items) > 1 else []
        if not isinstance(value, Node) or value.op not in ("tensor", "buffer", "param", "as_tensor", "array", "float"):
            return []
        value = value.inputs[0] if value.inputs else None
    return []


def _counts(node: Node, source: Node, channels: int) -> list[int] | None:
    try:
        bench = Bench()
        bench.set(source, _spread(bench, channels))
        made = bench.work(node)
        if made.ndim != 2 or made.shape != (STEPS, channels):
            return None
        return [len(bench.np.unique(bench.np.round(made[:, c], 3))) for c in range(channels)]
    except (Unknown, ValueError, TypeError):
        return None


def _spread(bench: Bench, channels: int) -> Array:
    line = bench.np.linspace(-WIDE, WIDE, STEPS)
    fine = bench.np.linspace(-4, 4, STEPS)
    return bench.np.stack([bench.np.where(bench.np.arange(STEPS) % 2 == 0, line, fine)] * channels, axis=1)


def _before(inner: Node, source: Node) -> Place | None:
    """Where the values are bounded: the last operation before the rounding."""
    return inner.place if inner is not source else None


__all__ = ["levels_missed"]
