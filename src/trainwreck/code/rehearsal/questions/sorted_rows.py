"""Batches that a network sorts for itself (by length, to pack them) and gives back in that order, beside labels that
stand as they came."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.order import COMPARES, given_back
from trainwreck.code.rehearsal.questions.paths import REDUCTIONS, meets
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, backwards, users
from trainwreck.code.rehearsal.questions.terms import axes

SORTS = frozenset(["sort", "topk"])
ORDERINGS = frozenset(["sort", "argsort", "topk", "sorted", "lexsort"])
PICKS = frozenset(["getitem", "index_select"])


def never_put_back(run: Rehearsing) -> Iterator[Answer]:
    """Rows sorted by a number of each (their length), and never put back before they meet what they belong to."""
    told: set[int] = set()
    for event in backwards(run):
        for meeting, inside, outside in meets(event.subject):
            if meeting.op not in COMPARES and not meeting.op.endswith("_loss"):
                continue
            theirs = {id(n): n for side in outside for n in ancestors(side)}
            if any(n.op in ORDERINGS for n in theirs.values()) or meeting.place is None:
                continue
            for node in (n for side in inside for n in ancestors(side, through=_keeps_rows)):
                order, values = _order(node) or (None, None)
                if order is None or values is None or id(order) in told:
                    continue
                if not all(_only_picks(run, o) for o in _orders_of(run, values)):
                    continue
                if not _of_one_batch(order, theirs.values()) or _sorted_before(order, theirs.values()):
                    continue
                told.add(id(order))
                text = "the rows come out in the order that they were sorted in, and the labels stand as they came"
                proof = [p for p in (node.place, meeting.place) if p is not None]
                yield Answer(given_back(order.place or meeting.place, meeting.place), text, tuple(proof))
                return


def _order(node: Node) -> tuple[Node, Node] | None:
    """In ``x[order]``: the order, where it is that of a sort of one number for each row, and these numbers."""
    if node.op not in PICKS or len(node.inputs) < 2:
        return None
    index: Value = node.inputs[1]
    if node.op == "index_select":
        index = node.options.get("index", node.inputs[2] if len(node.inputs) > 2 else None)
        if node.get("dim", 1) != 0:
            return None
    for _ in range(6):
        if not isinstance(index, Node) or not index.inputs:
            return None
        if index.op == "argsort" or (index.op == "part" and index.inputs[1:] == (1,)):
            made = index if index.op == "argsort" else index.inputs[0]
            values = made.inputs[0] if isinstance(made, Node) and made.op in (*SORTS, "argsort") else None
            if not isinstance(values, Node) or values.shape.open or len(values.shape.dims) != 1:
                return None
            # the order of an order puts rows back
            return None if any(n.op in ORDERINGS for n in ancestors(values)) else (index, values)
        index = index.inputs[0] if index.op in STRUCTURE and index.op != "getitem" else None
    return None


def _orders_of(run: Rehearsing, values: Node) -> Iterator[Node]:
    """All orders of these numbers: a sort may stand there twice."""
    for made in users(run).get(id(values), ()):
        if made.op == "argsort":
            yield made
        elif made.op in SORTS:
            yield from (p for p in users(run).get(id(made), ()) if p.op != "part" or p.inputs[1:] != (0,))


def _only_picks(run: Rehearsing, order: Node, depth: int = 0) -> bool:
    """True where an order serves nothing but to pick rows by it: nothing turns it round, nothing is written by it."""
    for user in users(run).get(id(order), ()):
        if user.op in PICKS and user.inputs[0] is not order:
            continue
        if user.op not in STRUCTURE or user.op in PICKS or depth > 6 or not _only_picks(run, user, depth + 1):
            return False
    return True


def _keeps_rows(node: Node) -> bool:
    """False where the rows are summed up or others are put behind them."""
    if node.op == "param":
        return False
    if node.op in REDUCTIONS:
        along = axes(node)
        return along is not None and 0 not in along
    if node.op in JOINS:
        along = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else 0))
        return along != 0
    return True


def _of_one_batch(order: Node, labels: Iterable[Node]) -> bool:
    """True where what was sorted and the labels were taken as one batch, or by one and the same choice of rows."""
    return bool(_taken(ancestors(order)) & _taken(labels))


def _taken(nodes: Iterable[Node]) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for node in nodes:
        if node.op == "batch" and node.place is not None:
            found.add(("batch", id(node.place[0])))
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        if isinstance(index, Node):
            found.add(("index", id(index)))
    return found


def _sorted_before(order: Node, labels: Iterable[Node]) -> bool:
    """True where a list is sorted by a key in a function that the batch comes from: the rows are in order already."""
    scopes = {id(n.place[1]): n.place[1] for n in (*ancestors(order), *labels) if n.place is not None}
    for scope in scopes.values():
        for node in ast.walk(scope.node):
            sorts = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("sort", "sorted")
            if sorts and any(k.arg == "key" for k in getattr(node, "keywords", ())):
                return True
    return False


__all__ = ["never_put_back"]
