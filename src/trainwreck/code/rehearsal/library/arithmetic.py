"""Arithmetic of Python's standard library on numbers."""

from __future__ import annotations

import ast
import math

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import UNKNOWN, Value
from trainwreck.code.rehearsal.library import NOTHING, function
from trainwreck.code.rehearsal.rehearsing import Rehearsing

NUMBERS = (int, float, bool)


@function("builtins.divmod", "numpy.divmod")
def _divided(run: Rehearsing, asked: Asked) -> Value:
    """The whole part and the rest."""
    if len(asked.args) < 2 or asked.options:
        return NOTHING
    return tuple(run.operated(op, asked.args[0], asked.args[1], asked.place) for op in (ast.FloorDiv(), ast.Mod()))


@function("math.*")
def _math(run: Rehearsing, asked: Asked) -> Value:
    compute = getattr(math, asked.name, None)
    if callable(compute) and asked.args and all(isinstance(a, NUMBERS) and abs(a) < 1e9 for a in asked.args):
        if asked.name in ("factorial", "comb", "perm") and any(abs(a) > 200 for a in asked.args):
            return UNKNOWN
        try:
            found = compute(*asked.args)
        except (TypeError, ValueError, ArithmeticError):
            return UNKNOWN
        return found if isinstance(found, NUMBERS) else UNKNOWN
    return run.node(asked.name, asked.args, asked.place, full=asked.full)
