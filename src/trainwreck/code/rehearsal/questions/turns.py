"""Arrays that are put together of what each turn of a comprehension gives."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Items, Node
from trainwreck.code.rehearsal.graph import parts

JOINED = frozenset(["stack", "cat", "concatenate", "array"])


def one_by_one(node: Node) -> tuple[Node, int, list[Node]] | None:
    """Of ``torch.stack([data[i] for i in range(n)])``: the counter, ``n``, and what a turn of it gives."""
    given = node.inputs[0] if node.op in JOINED and node.inputs else None
    if not isinstance(given, Items) or not given.more or not isinstance(given.source, Items) or len(given.items) != 2:
        return None
    counter = given.source.items[-1] if given.source.items else None
    if not isinstance(counter, Node) or counter.op != "counter" or not isinstance(given.length, int):
        return None
    return counter, given.length, list(parts(given.items[-1]))


__all__ = ["one_by_one"]
