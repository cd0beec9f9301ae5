"""Questions about computed values: what they were computed from, which parameters a backward reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from trainwreck.code.rehearsal.domain import Items, Node, Table, Value

MAX_ANCESTORS = 20_000
OPAQUE = frozenset(["unknown", "opaque", "call", "item", "argument", "attribute"])
"""Values of which it isn't known how they were computed."""


def parts(value: Value) -> Iterator[Node]:
    """The computed values that ``value`` holds: itself, or the elements of a tuple, list or dict."""
    match value:
        case Node():
            yield value
        case tuple():
            for item in value:
                yield from parts(item)
        case Items():
            for item in value.items:
                yield from parts(item)
        case Table():
            for item in value.entries.values():
                yield from parts(item)


def ancestors(value: Value, through: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """``value`` and all that it was computed from, nearest first, each once. ``through(node)``: look behind it?"""
    queue = list(parts(value))
    seen = {id(n) for n in queue}
    for place in range(MAX_ANCESTORS):
        if place >= len(queue):
            return
        node = queue[place]
        yield node
        if through is not None and not through(node):
            continue
        for item in (*node.inputs, *node.options.values()):
            # nearly all are values themselves, and this is the most visited loop of all questions
            for inner in (item,) if isinstance(item, Node) else parts(item):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    queue.append(inner)


def carries(node: Node) -> bool:
    """False for a value that depends on how large, how many or of which kind its inputs are, not on what they hold:
    ``ancestors(value, through=carries)`` are those whose numbers ``value`` is made of."""
    if node.op == "attribute":
        return node.name not in ("shape", "dtype", "device", "ndim")
    return node.op not in SIZED


SIZED = frozenset(
    """len size numel counter zeros ones full empty zeros_like ones_like full_like empty_like rand_like randn_like
    randint_like arange eye rand randn randint randperm""".split()
)


def near(value: Value, count: int) -> list[Node]:
    """The ``count`` values nearest to ``value`` among it and what it was computed from."""
    return list(islice(ancestors(value), count))


def graph(loss: Value) -> Iterator[Node]:
    """The values that a backward from ``loss`` goes through: those that hang in the graph."""
    return ancestors(loss, through=_hangs)


def _hangs(node: Node) -> bool:
    return node.grad and node.op not in ("detach", "detach_", "item", "param")


def reached(loss: Value) -> list[Node]:
    """The parameters that a backward from ``loss`` gives a gradient."""
    return [n for n in graph(loss) if n.op == "param" and n.trainable is not False]


def computed_with(value: Value, since: int) -> set[int]:
    """The parameters (by ``id``) that were used to work a value out, from a moment on (a serial number)."""
    used = (n for n in ancestors(value) if n.serial >= since)
    return {id(i) for n in used for i in n.inputs if isinstance(i, Node) and i.op == "param"}


def opaque(loss: Value) -> bool:
    """True where something on the way is not understood, so that a parameter may be reached unseen."""
    return any(n.grad and n.op in OPAQUE for n in graph(loss))
