"""Which axis is the time, told by how a long record is gone through: piece by piece, with the state carried on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained

SWAPS = ("t", "T", "mT", "transpose", "swapaxes")
LAID_OUT = frozenset(["flatten", "ravel", "view", "reshape", "stack", "cat"])
"""What makes one row of values that had an order of their own: it may be interleaved."""

THROUGH = frozenset(
    """embedding linear dropout relu gelu tanh sigmoid layer_norm float to long double contiguous add sub mul div
    clone cuda detach""".split()
)
"""What leaves the first two axes where they are."""
REACH = 30
"""So far behind a state the call is looked for that gave it: a few parts, detaches and tuples."""


def carried_samples(node: Node) -> int | None:
    """The axis of the samples of a recurrent layer that goes on from the state of the piece before: the other one of
    the first two than that along which the pieces are cut. None where no state is carried, or no cut is seen."""
    piece = _piece(node)
    return 0 if piece is not None and _cut_along(piece) == 1 else None


def strided_record(run: Rehearsing) -> Iterator[Answer]:
    """One long row of values that is laid out in lanes so that each lane holds every so-manyth value of it."""
    told: set[int] = set()
    for node in trained(run):
        piece = _piece(node)
        axis = _cut_along(piece) if piece is not None else None
        at: Value = piece.inputs[0] if piece is not None and axis is not None else None
        turned = 0
        while isinstance(at, Node) and at.op in (*SWAPS, "contiguous", "to", "unsqueeze") and at.inputs:
            last = at.op != "unsqueeze" or at.inputs[1:2] in ((-1,), (2,))
            turned, at = turned + (at.op in SWAPS), at.inputs[0] if last else None
        if not isinstance(at, Node) or at.op not in ("view", "reshape") or at.place is None or not at.inputs:
            continue
        row, lanes = at.inputs[0], [d for d in at.shape.dims if d != 1]
        if not isinstance(row, Node) or len(row.shape.dims) != 1 or row.shape.open or at.shape.open or len(lanes) != 2:
            continue
        if turned > 1 or any(
            n.op in LAID_OUT or (n.op == "getitem" and n.shape.open) or _grown_in_turns(n) for n in _along_row(row)
        ):
            continue
        if axis == turned and id(at.place[0]) not in told and at.shape.dims[:2] == tuple(lanes):
            told.add(id(at.place[0]))
            text = "neighbours of this row come to lie in different lanes, and each lane is then read as one sequence"
            yield Answer(at.place, text, tuple(p for p in (node.place,) if p is not None))


def _along_row(row: Node) -> Iterator[Node]:
    """The row and what it was cut out of or converted from."""
    at: Value = row
    for _ in range(REACH):
        if not isinstance(at, Node):
            return
        yield at
        at = at.inputs[0] if at.inputs and (at.op in ("getitem", "to", "long", "float") or at.op in LAID_OUT) else None


def _grown_in_turns(node: Node) -> bool:
    """True for what is made of a list that grows in loops within one another: it may hold a row for each outer turn."""
    for listed in node.inputs[:1]:
        if isinstance(listed, Items) and listed.place is not None:
            grown = isinstance(listed.place[0], ast.List) and not listed.place[0].elts
            parts = [e for e in listed.items if isinstance(e, Node)]
            if grown and not (parts and all(len(e.turns) <= len(node.turns) + 1 for e in parts)):
                return True
    return False


def _piece(node: Node) -> Node | None:
    """What a recurrent layer is given that goes on from its own state: the piece as it was cut."""
    if node.op not in ("lstm", "gru", "rnn"):
        return None
    state = node.inputs[1] if len(node.inputs) > 1 else None
    if not any(n.op == node.op and n.owner is node.owner for n in near(state, REACH)):
        return None
    at: Value = node.inputs[0]
    for _ in range(8):
        if not isinstance(at, Node) or not at.inputs:
            return None
        if at.op == "unsqueeze" and at.inputs[1:2] in ((-1,), (2,)):
            at = at.inputs[0]
        elif at.op in THROUGH:
            data = [i for i in at.inputs[:2] if isinstance(i, Node) and i.op not in ("param", "buffer")]
            at = data[0] if len(data) == 1 else None
        else:
            return at
    return None


def _cut_along(piece: Node) -> int | None:
    """0 for ``record[s:s + n]`` with a count of turns, 1 for ``record[:, s:s + n]`` or a turn's piece of
    ``record.split(n, dim=1)``."""
    if _cut_along_second(piece):
        return 1
    index = piece.inputs[1] if piece.op == "getitem" and len(piece.inputs) > 1 else None
    index = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if not isinstance(index, Obj) or index.kind != "builtins.slice" or len(index.args) != 3:
        return None
    return 0 if all(any(n.op == "counter" for n in ancestors(end)) for end in index.args[:2]) else None


def _cut_along_second(piece: Node) -> bool:
    """``record[:, s:s + n]`` with a count of turns, or a turn's piece of ``record.split(n, dim=1)``."""
    if piece.op == "element" and isinstance(piece.inputs[0], Node) and piece.inputs[0].op in ("split", "chunk"):
        cut = piece.inputs[0]
        return cut.options.get("dim", cut.inputs[2] if len(cut.inputs) > 2 else None) == 1
    index = piece.inputs[1] if piece.op == "getitem" and len(piece.inputs) > 1 else None
    if not isinstance(index, tuple) or len(index) < 2:
        return False
    first, second = index[:2]
    if not (isinstance(first, Obj) and isinstance(second, Obj) and len(second.args) == 3):
        return False
    moving = all(any(n.op == "counter" for n in ancestors(end)) for end in second.args[:2])
    return first.kind == second.kind == "builtins.slice" and first.args[:2] == (None, None) and moving
