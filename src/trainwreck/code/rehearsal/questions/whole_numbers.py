"""Fractions that are lost in whole numbers: written into a table of integers, or divided away."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import External, Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds, core, trained

WHOLE = frozenset("long int int8 int16 int32 int64 uint8 short LongTensor IntTensor int_".split())
FLOATS = frozenset(["float", "double", "half", "bfloat16"])
MAKES = frozenset(["zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like"])
DRAWS = frozenset(["randint", "integers", "randperm", "arange", "permutation"])
BROKEN = frozenset("rand randn random normal uniform standard_normal div softmax sigmoid tanh mean std exp".split())
"""What gives numbers with fractions, as a rule between two whole ones."""


def fractions_lost(run: Rehearsing) -> Iterator[Answer]:
    """Numbers with fractions are written into an array of whole numbers, which goes on into what is trained."""
    told: set[int] = set()
    for node in trained(run):
        for table in _tables(node):
            base, value = table.inputs[0], table.inputs[1]
            made = _integer(base)
            if made is None or made.place is None or id(made.place[0]) in told:
                continue
            found = core(value)
            if found and all(n.op in BROKEN and not _integer(n) for n in found):
                told.add(id(made.place[0]))
                text = "whole numbers are kept here, and what is written into them has fractions: they are cut off"
                yield Answer(made.place, text, (table.place,) if table.place is not None else ())


def divided_away(run: Rehearsing) -> Iterator[Answer]:
    """Whole numbers that are divided by (about) their greatest, without a rest: nearly all become zero."""
    told: set[int] = set()
    for node in trained(run):
        for value in _data(node):
            first, number = (*value.inputs, None, None)[:2]
            whole = isinstance(number, int | float) and number > 2 and isinstance(first, Node)
            if value.op != "floor_divide" or not whole or value.place is None or id(value.place[0]) in told:
                continue
            if _integer(first) is not None and bounds(first).low >= 0 and bounds(first).high <= number:
                told.add(id(value.place[0]))
                text = f"this division leaves whole numbers: all of them below {number:g} become 0"
                yield Answer(value.place, text)


def _data(node: Node) -> Iterator[Node]:
    """What is given to a layer as data, before it was cut into batches."""
    for given in node.inputs[:2]:
        if not isinstance(given, Node) or given.grad:
            continue
        at: Value = given
        for _ in range(16):
            if not isinstance(at, Node):
                break
            yield at
            passes = at.op in STRUCTURE or at.op in ("batch", "element", "either", "sub", "mul", "flatten")
            at = at.inputs[0] if passes and at.inputs else None


def _tables(node: Node) -> Iterator[Node]:
    yield from (n for n in _data(node) if n.op == "setitem" and len(n.inputs) > 1)


def _integer(value: Value) -> Node | None:
    """What made an array that can hold whole numbers only; None where that isn't known."""
    at = value
    for _ in range(12):
        if not isinstance(at, Node):
            return None
        kinds = [v for v in (*at.inputs[1:], *at.options.values()) if isinstance(v, External)]
        named = next((k.name for k in kinds if k.name != "device"), "")
        if at.op in MAKES or at.op in DRAWS or at.op in ("astype", "to", "type", "tensor", "array"):
            if named:
                return at if named in WHOLE else None
            if at.op in DRAWS:
                return at
            if not at.op.endswith("_like"):
                return None
        elif at.op in WHOLE:
            return at
        elif at.op in FLOATS or at.op not in STRUCTURE | {"setitem", "batch", "element"}:
            return None
        at = at.inputs[0] if at.inputs else None
    return None
