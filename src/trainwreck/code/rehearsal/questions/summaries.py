"""Statistics that values are computed with: which array each summarises, and where the program decides which one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, External, Node, Place, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions.paths import REDUCTIONS

FITS = frozenset(["fit", "fit_transform"])
COMPUTED_WITH = frozenset("sub div mul add clip clamp where fillna nan_to_num digitize lt gt".split())
THROUGH = frozenset(
    """add clip clamp sqrt getitem part maximum astype mul sub div float tensor from_numpy as_tensor either item
    attribute buffer view reshape unsqueeze""".split()
)
MOVING = frozenset(["rolling", "ewm", "expanding", "groupby", "resample", "sliding_window_view", "unfold"])
"""What has a number for each window or group: its mean is no mean of all rows."""
MAX_DEPTH = 5
BYTES = re.compile(r"\bu?int8\b|ByteTensor")
NEAR = 24


class Summary(NamedTuple):
    """A statistic of ``array``, and what computed it."""

    made: Node | Event
    array: Node


def summaries(run: Rehearsing, node: Node) -> Iterator[Summary]:
    """Statistics that ``node`` was computed with."""
    if node.op in COMPUTED_WITH:
        for item in node.inputs[1:]:
            for inner in parts(item):
                yield from _reduced(inner)
    if node.op in ("fit_transform", "transform") and node.owner is not None:
        for event in run.tape:
            if event.subject is node.owner and event.name in FITS and event.args and event.place is not None:
                for array in parts(event.args[0]):
                    yield Summary(event, array)


def _reduced(node: Node, depth: int = 0) -> Iterator[Summary]:
    if node.op in REDUCTIONS and node.op not in ("len", "sum", "item"):
        axis = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else 0))
        rows = axis in (0, None) or (isinstance(axis, tuple) and 0 in axis) or axis == ()
        first = node.inputs[0] if node.inputs else None
        if (
            rows
            and node.place is not None
            and isinstance(first, Node)
            and not any(n.op in MOVING for n in near(first, 2))
        ):
            yield Summary(node, first)
        return
    if depth < MAX_DEPTH and node.op in THROUGH:
        for item in node.inputs:
            for inner in parts(item):
                yield from _reduced(inner, depth + 1)


def decided(summary: Summary, split: Place | None) -> Place | None:
    """Where the program says which rows are summarised: in the function that splits them, where that hands all rows to
    a helper (a constructor of the program speaks for itself), else where the statistic is computed."""
    made = summary.made
    if made.place is None or split is None or made.place[1] is split[1]:
        return made.place
    ways = (*made.stack, made.place)
    first = next((n for n, p in enumerate(ways) if p[1] is split[1]), None)
    if first is None or any(getattr(p[1].node, "name", "") == "__init__" for p in ways[first + 1 :]):
        return made.place
    return ways[first]


def drawn_as_bytes(node: Node, used: Iterable[Node]) -> bool:
    """True for values that are spread over 0 to 255 and stored in bytes: so images are drawn, the range is a constant
    of theirs, and what standardises them comes after it."""
    return any(
        cast.op == "byte" or any(isinstance(v, External | str) and BYTES.search(str(v)) for v in _types(cast))
        for cast in used
        if cast.op in ("byte", "astype", "to", "type") and any(n is node for n in near(cast, NEAR))
    )


def _types(cast: Node) -> tuple[Value, ...]:
    return (*cast.inputs[1:], *cast.options.values())


__all__ = ["Summary", "decided", "drawn_as_bytes", "summaries"]
