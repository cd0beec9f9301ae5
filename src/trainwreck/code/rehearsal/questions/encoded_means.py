"""Categories that are told by the mean of the target in them: is that mean taken from the training rows alone?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors, carries
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import meets
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.splits import sides

MEANS = frozenset(["mean", "median"])


def means_of_all(run: Rehearsing) -> Iterator[Answer]:
    """``df["rate"] = df["shop"].map(df.groupby("shop")["click"].mean())`` before the rows of ``df`` are divided."""
    both = sides(run)
    for node in both.held_nodes.values():
        found = _encoded(node) if id(node) in both.train_nodes else None
        if found is None or node.place is None:
            continue
        column, frame = found
        split = next((n for n in both.held_nodes.values() if _parts(n) and any(m is node for m in ancestors(n))), None)
        if split is None or any(_parts(n) for n in ancestors(frame)) or not told_column(run, column):
            continue
        text = f"the mean of {column!r}, the target, over all rows becomes a feature before the split"
        yield Answer(node.place, text, tuple(p for p in (split.place,) if p is not None))
        return


def _encoded(node: Node) -> tuple[str, Node] | None:
    """The column whose means stand for the categories, and the frame that they are taken of."""
    table = node.inputs[1] if node.op == "map" and len(node.inputs) > 1 else node if node.op == "transform" else None
    if node.op == "transform" and (len(node.inputs) < 2 or node.inputs[1] not in MEANS):
        return None
    picked = table.inputs[0] if isinstance(table, Node) and table.inputs else None
    if not isinstance(table, Node) or not isinstance(picked, Node) or (table is not node and table.op not in MEANS):
        return None
    group = picked.inputs[0] if picked.op in ("getitem", "attribute") and picked.inputs else None
    column = picked.name if picked.op == "attribute" else picked.inputs[-1]
    known = isinstance(group, Node) and group.op == "groupby" and isinstance(column, str)
    frame = group.inputs[0] if known and isinstance(group, Node) and group.inputs else None
    return (column, frame) if isinstance(frame, Node) and isinstance(column, str) else None


def _parts(node: Node) -> bool:
    """True for a part of the rows, drawn or cut."""
    return node.op == "split" or (node.op in ("sample", "head", "tail") and bool(node.inputs[1:] or node.options))


def told_column(run: Rehearsing, column: str) -> bool:
    """True where this column is what a loss compares outputs with."""
    for event in backwards(run):
        for _, _, outside in meets(event.subject):
            if any(_column(n) == column for n in ancestors(tuple(outside), through=_plain)):
                return True
    return False


def _plain(node: Node) -> bool:
    """True for what holds the numbers of a column, not for one that is picked, nor for how many rows there are."""
    return _column(node) is None and carries(node)


def _column(node: Node) -> str | None:
    """The column of a frame that this is."""
    if node.op == "getitem" and len(node.inputs) > 1 and isinstance(node.inputs[1], str):
        return node.inputs[1]
    plain = node.op == "attribute" and node.name not in ("values", "shape", "dtype", "T", "index", "columns")
    return node.name if plain else None


__all__ = ["means_of_all", "told_column"]
