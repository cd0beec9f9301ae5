"""Positions that a network is given as sines and cosines of rising frequency: does the slowest wave span them?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards
from trainwreck.code.rehearsal.questions.scale import KEEPS, Size, size
from trainwreck.code.rehearsal.trial.bench import Bench, Unknown

WAVES = frozenset(["sin", "cos"])
TAKES = frozenset(["getitem", "batch", "element", "part", "loaded", "index_select"])
GRIDS = frozenset(["meshgrid", "repeat_interleave", "cartesian_prod", "mgrid", "indices", "ravel"])
FEWEST = 4
"""So many frequencies in a row are a bank for positions; calendar features have one for the day, the week, the year."""
RATIO = 1.5
"""Each at least so many times the one before, always by the same factor."""
REPEATS = 4.0
"""How often the slowest wave may repeat over all positions: half to one time in NeRF (arXiv:2003.08934), where the
coordinates lie between -1 and 1."""


def repeating(run: Rehearsing) -> Iterator[Answer]:
    """The slowest wave repeats many times over the positions: far ones get the same features, as if they were one."""
    banks: dict[int, tuple[Node, Node, set[float]]] = {}
    behind = {id(n): n for e in backwards(run) for n in ancestors(e.subject)}
    for node in behind.values():
        if node.op not in WAVES or node.grad or not node.inputs:
            continue
        found = _angle(node.inputs[0])
        if found is not None:
            own = banks.setdefault(id(found[0]), (found[0], node, set()))
            own[2].update(float(f"{f:.6g}") for f in found[1])
    for positions, wave, frequencies in banks.values():
        known = _size(positions)
        rising = sorted(frequencies)
        if known is None or not _bank(rising) or _given_too(positions, behind):
            continue
        span = known.spread * math.sqrt(12)
        repeats = span * rising[0] / (2 * math.pi)
        place = _made(positions) or wave.place
        if repeats >= REPEATS and place is not None:
            text = f"positions span {span:.0f}: the slowest of the waves that encode them repeats {repeats:.0f} times"
            yield Answer(place, text, (wave.place,) if wave.place is not None else ())
            return


def _size(positions: Node) -> Size | None:
    """Of places in a grid too: their numbers are those of the axes."""
    memo: dict[int, Size | None] = {}
    for node in sorted(ancestors(positions), key=lambda n: n.serial):
        if node.op in GRIDS:
            found = _axes(node) or [size(i, memo) for given in node.inputs for i in parts(given)]
            known = [f for f in found if f is not None]
            memo[id(node)] = min(known, key=lambda f: f.spread) if known and len(known) == len(found) else None
    return size(positions, memo)


def _axes(node: Node) -> list[Size | None]:
    """Of ``np.mgrid[0:48, 0:64]`` and ``np.indices((48, 64))``: whole numbers along each axis."""
    if node.op not in ("mgrid", "indices") or node.shape.open:
        return []
    if node.op == "mgrid" and not all(_counts(i) for given in node.inputs for i in _tuple(given)):
        return []
    return [Size(d / 2, d / math.sqrt(12)) if d else None for d in node.shape.dims[1:]]


def _tuple(value: Value) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,)


def _counts(value: Value) -> bool:
    """True for a slice with whole ends and no step of its own (``-1:1:64j`` has one)."""
    return isinstance(value, Obj) and value.kind == "builtins.slice" and value.args[2:] in ((), (None,), (1,))


def _angle(value: Value) -> tuple[Node, list[float]] | None:
    """``positions * frequencies``: the positions, and the frequencies with all numbers multiplied in."""
    factors = list(_factors(value))
    number, bank = 1.0, list[float]()
    rest: list[Node] = []
    for factor in factors:
        worked = _worked(factor)
        if worked is not None and len(worked) == 1:
            number *= worked[0]
        elif worked is not None and _bank(worked) and not bank:
            bank = worked
        elif isinstance(factor, Node):
            rest.append(factor)
    if len(rest) != 1 or not number:
        return None
    return _source(rest[0]), [abs(number) * f for f in bank or [1.0]]


def _factors(value: Value, depth: int = 0) -> Iterator[Value]:
    if isinstance(value, Node) and depth < 12 and value.inputs:
        if value.op in ("mul", "outer") and len(value.inputs) > 1:
            for item in value.inputs[:2]:
                yield from _factors(item, depth + 1)
            return
        if value.op in ("reshape", "view", "flatten", "unsqueeze") and isinstance(value.inputs[0], Node):
            inner = list(_factors(value.inputs[0], depth + 1))
            if len(inner) > 1:
                yield from inner
                return
    yield value


def _worked(value: Value) -> list[float] | None:
    """The different numbers of a factor, from the smallest, in all turns of a loop that counts; None where they can't
    be worked out."""
    if isinstance(value, int | float):
        return [float(abs(value))]
    try:
        bench = Bench()
        for node in ancestors(value) if isinstance(value, Node) else ():
            if node.op == "counter" and node.full == "builtins.range" and all(isinstance(i, int) for i in node.inputs):
                bench.set(node, bench.np.arange(*node.inputs))
        made = bench.work(value)
        return sorted({float(abs(n)) for n in made.reshape(-1)}) if made.size <= 4096 else None
    except (Unknown, ValueError, TypeError):
        return None


def _bank(rising: list[float]) -> bool:
    if len(rising) < FEWEST or rising[0] <= 0:
        return False
    steps = [b / a for a, b in pairwise(rising)]
    return min(steps) >= RATIO and max(steps) < 1.01 * min(steps)


def _source(node: Node) -> Node:
    """The positions before they got another axis."""
    for _ in range(8):
        first = node.inputs[0] if node.inputs else None
        added = node.op == "getitem" and isinstance(node.inputs[1], tuple) and any(i is None for i in node.inputs[1])
        if not isinstance(first, Node) or not (node.op in ("unsqueeze", "view", "reshape") or added):
            break
        node = first
    return node


def _given_too(positions: Node, behind: dict[int, Node]) -> bool:
    """True where the positions go into the network beside their waves."""
    return any(
        n.op in ("cat", "concat", "linear", "hstack", "stack")
        and any(m is positions for i in n.inputs for m in ancestors(i, through=_kept) if isinstance(i, Node | tuple))
        for n in behind.values()
        if n.serial > positions.serial
    )


def _kept(node: Node) -> bool:
    return node.op in STRUCTURE


def _made(positions: Node) -> Place | None:
    """Where they could have been scaled: where whole numbers become real ones, or else where the rows are put
    together from which batches are taken."""
    at, together = positions, None
    for _ in range(40):
        first = at.inputs[0] if at.inputs else None
        inner = next(iter(parts(first)), None)
        if at.op in ("float", "double", "to", "astype", "type"):
            return at.place
        if at.op not in TAKES and together is None:
            together = at.place
        if at.op not in KEEPS | GRIDS or inner is None:
            break
        at = inner
    return together


__all__ = ["repeating"]
