"""How many utterances have no path in a connectionist temporal classification, and where a layer's stride is written.

A path needs a frame for each symbol, and one more between two equal ones (Graves et al. 2006, section 3.1)."""

from __future__ import annotations

import ast
import math

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Obj, Place
from trainwreck.code.rehearsal.questions.places import named
from trainwreck.core.row import Row

MOST = 80
"""Symbols of a target above which nothing is worked out."""
LENGTHS = 9
"""So many lengths of targets stand for all."""


class Pace(Row):
    """Frames of the data for each symbol: ``fixed``, and any number from ``low`` to ``high`` as often as another."""

    fixed: float
    low: float
    high: float

    @property
    def mean(self) -> float:
        return self.fixed + (self.low + self.high) / 2


def without_path(pace: Pace, lengths: tuple[float, float], symbols: float | None, strides: list[int]) -> float:
    """The share of utterances with more symbols than the layers leave frames for; each symbol is drawn by itself.

    ``symbols``: how many there are to draw from, each as often; None where that isn't known."""
    low, high = (math.floor(n) for n in lengths)
    if low < 1 or high > MOST or any(n != math.floor(n) for n in pace):
        return 0.0
    step = max(1, (high - low) // (LENGTHS - 1))
    known = list(range(low, high + 1, step))
    return sum(_without(pace, length, symbols, strides) for length in known) / len(known)


def _without(pace: Pace, length: int, symbols: float | None, strides: list[int]) -> float:
    each = range(int(pace.fixed + pace.low), int(pace.fixed + pace.high) + 1)
    frames = {0: 1.0}
    for _ in range(length):
        longer: dict[int, float] = {}
        for count, share in frames.items():
            for more in each:
                longer[count + more] = longer.get(count + more, 0.0) + share / len(each)
        frames = longer
    equal = 1.0 / symbols if symbols else 0.0
    pairs = length - 1
    repeats = [math.comb(pairs, k) * equal**k * (1 - equal) ** (pairs - k) for k in range(pairs + 1)]
    lost = 0.0
    for count, share in frames.items():
        left = count
        for stride in strides:
            left = math.ceil(left / stride)
        lost += share * (1.0 if left < length else sum(repeats[left - length + 1 :]))
    return lost


def setting_of(run: Rehearsing, layer: Obj, stride: int) -> Place | None:
    """Where the strides of a layer are written as a setting, if that is one place: ``strides: tuple = (2, 2)``."""
    call, scope = layer.place if layer.place is not None else (None, None)
    if not isinstance(call, ast.Call) or scope is None:
        return None
    given = [k.value for k in call.keywords if k.arg == "stride"] or call.args[3:4]
    if not given or not isinstance(given[0], ast.Name | ast.Attribute | ast.Subscript):
        return None
    locals_ = {n.id for n in ast.walk(given[0]) if isinstance(n, ast.Name)}
    wanted = _attributes(given[0]) | (locals_ & set(scope.params))
    for node in scope.nodes:
        bound = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        if locals_ & {n.id for t in bound for n in ast.walk(t) if isinstance(n, ast.Name)}:
            value = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
            wanted |= _attributes(value) if value is not None else set()
    found = {}
    for walked in run.project.walked.values():
        for around in walked.scopes:
            for node in around.nodes:
                for name, value in named(node):
                    if name.lstrip("-").replace("-", "_") in wanted and stride in _numbers(value):
                        found[id(value)] = (value, around)
    return next(iter(found.values())) if len(found) == 1 else None


def _attributes(value: ast.AST) -> set[str]:
    """The attributes and keys that an expression reads."""
    cuts = [n.slice for n in ast.walk(value) if isinstance(n, ast.Subscript)]
    keys = {c.value for c in cuts if isinstance(c, ast.Constant) and isinstance(c.value, str)}
    return keys | {n.attr for n in ast.walk(value) if isinstance(n, ast.Attribute)}


def _numbers(value: ast.expr) -> list[object]:
    items = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    return [i.value for i in items if isinstance(i, ast.Constant)]


__all__ = ["Pace", "setting_of", "without_path"]
