"""Patterns of einops: what ``rearrange``, ``reduce`` and ``repeat`` make of a shape, and where a pattern can't fit."""

from __future__ import annotations

from collections.abc import Mapping

from trainwreck.code.pattern import pattern
from trainwreck.code.shapes.domain import ANY, Dim, Shape, Value, product, size

_TOKEN = pattern(r"\(|\)|\.\.\.|[^\s()]+")
Side = list[list[str]]
"""Axes of one side: each a list of the names that it is made of."""


def parsed(text: str) -> Side | None:
    """``b (h p) c`` as [["b"], ["h", "p"], ["c"]]; None where it is malformed."""
    axes: Side = []
    group: list[str] | None = None
    for token in _TOKEN.findall(text):
        if token == "(":
            if group is not None:
                return None
            group = []
        elif token == ")":
            if group is None:
                return None
            axes.append(group)
            group = None
        elif group is not None:
            group.append(token)
        else:
            axes.append([token])
    return axes if group is None else None


def matched(pattern: str, shape: Shape, given: Mapping[str, Value]) -> tuple[Shape, str, str]:
    """(the new shape, the kind of clash or "", what is wrong) for ``pattern`` on a tensor of ``shape``."""
    left, arrow, right = pattern.partition("->")
    before, after = parsed(left), parsed(right)
    if not arrow or before is None or after is None:
        return ANY, "", ""
    known: dict[str, Dim] = {name: size(value) for name, value in given.items()}
    if ["..."] in before:
        return _open(before, after, shape, known)
    if shape.open:
        if len(shape.dims) > len(before):
            return ANY, "", ""
        shape = Shape((None,) * (len(before) - len(shape.dims)) + shape.dims, False, shape.by)
    if len(shape.dims) != len(before):
        return (
            ANY,
            "pattern",
            f"the pattern {left.strip()!r} has {len(before)} axes, the tensor {len(shape.dims)}: {shape}",
        )
    for names, dim in zip(before, shape.dims, strict=True):
        problem = _solve(names, dim, known)
        if problem:
            kind = "divide" if "divisible" in problem else "pattern"
            return ANY, kind, f"{problem} in {pattern!r}, for {shape}"
    return Shape(tuple(_sized(names, known) for names in after), False, shape.by), "", ""


def _open(before: Side, after: Side, shape: Shape, known: dict[str, Dim]) -> tuple[Shape, str, str]:
    """A pattern with an ellipsis: the axes behind it are matched from the right."""
    tail = before[before.index(["..."]) + 1 :]
    if len(tail) <= len(shape.dims):
        for names, dim in zip(reversed(tail), reversed(shape.dims), strict=False):
            if _solve(names, dim, known):
                return ANY, "", ""
    if ["..."] in after:
        rest = after[after.index(["..."]) + 1 :]
        return Shape(tuple(_sized(names, known) for names in rest), True, shape.by), "", ""
    return ANY, "", ""


def _solve(names: list[str], dim: Dim, known: dict[str, Dim]) -> str:
    """Learns the size of the one unknown name of an axis; a sentence where it can't be."""
    unknown = [n for n in names if not n.isdigit() and known.get(n) is None]
    factor = product([int(n) if n.isdigit() else known[n] for n in names if n not in unknown]) or 0
    label = " ".join(names)
    if dim is None:
        return ""
    if not unknown:
        return f"an axis of {dim} is taken as {label} = {factor}" if factor != dim else ""
    if len(unknown) == 1 and factor:
        if dim % factor:
            return f"an axis of {dim} is not divisible by {factor} as ({label})"
        known[unknown[0]] = dim // factor
    return ""


def _sized(names: list[str], known: Mapping[str, Dim]) -> Dim:
    return product([int(n) if n.isdigit() else known.get(n) for n in names])
