"""Rows that are padded at their beginning: do the positions of their tokens begin behind the padding?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.packing import counts_along
from trainwreck.code.rehearsal.questions.roles import JOINS, trained
from trainwreck.code.rehearsal.questions.stripping import grows

FILLS = frozenset(["full", "zeros", "full_like", "zeros_like", "ones"])
FEW = 6


def positions_from_padding(run: Rehearsing) -> Iterator[Answer]:
    """Rows are written to the right end of what is filled with padding, their continuations are generated behind them,
    and positions are counted from the left end on: a longer row beside it moves all of them.

    Not said where nothing is generated: a window of the last events may well be counted from its left end."""
    if not any(n.op in JOINS and n.inputs and grows(n) for n in run.nodes):
        return
    for node in trained(run):
        if node.op != "add" or len(node.inputs) < 2:
            continue
        tables = [n for i in node.inputs[:2] for n in [_looked_up(i)] if n is not None]
        if len(tables) != 2:
            continue
        for tokens, places in (tables, tables[::-1]):
            given = places.inputs[0]
            if not isinstance(given, Node) or not counts_along(given) or places.place is None:
                continue
            padded = next((n for n in ancestors(tokens.inputs[0]) if n.op == "setitem" and _at_the_end(n)), None)
            if padded is not None:
                counted = next((n.place for n in ancestors(given) if n.op == "arange"), None)
                text = "rows are padded at their beginning, and positions are counted from the padding on"
                yield Answer(counted or places.place, text, (padded.place,) if padded.place is not None else ())
                return


def _looked_up(value: Value) -> Node | None:
    at = value
    for _ in range(FEW):
        if not isinstance(at, Node) or at.op == "embedding":
            return at if isinstance(at, Node) and at.inputs else None
        if at.op not in ("mul", "dropout", "expand", "unsqueeze", "layer_norm") or not at.inputs:
            return None
        at = at.inputs[0]
    return None


def _at_the_end(written: Node) -> bool:
    """``ids[i, width - len(row):] = row``, or ``ids[i, -len(row):] = row``, into what holds one number everywhere."""
    base, index = written.inputs[0], written.inputs[2] if len(written.inputs) > 2 else None
    last = index[-1] if isinstance(index, tuple) and index else None
    if not isinstance(last, Obj) or last.kind != "builtins.slice" or last.args[1] is not None:
        return False
    start = last.args[0]
    counted = isinstance(start, Node) and start.op in ("sub", "neg") and any(n.op == "len" for n in near(start, FEW))
    ground = next((n for n in ancestors(base) if n.op != "setitem"), None)
    return counted and ground is not None and ground.op in FILLS


__all__ = ["positions_from_padding"]
