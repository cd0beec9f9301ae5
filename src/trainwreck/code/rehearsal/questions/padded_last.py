"""Recurrent layers over padded rows: is the state behind the padding taken for the state behind the last token?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained
from trainwreck.code.rehearsal.questions.trails import trail

RECURRENT = frozenset(["lstm", "gru", "rnn"])
BEFORE = frozenset(["embedding", "dropout", "linear", "layer_norm", "relu", "contiguous", "float", "to"])


def state_of_padding(run: Rehearsing) -> Iterator[Answer]:
    """``states[:, -1]`` of rows that ``pad_sequence`` filled up on the right: of shorter rows that is the state after
    the padding."""
    told: set[int] = set()
    for node in trained(run):
        if node.op != "getitem" or len(node.inputs) < 2 or node.place is None or id(node.place[0]) in told:
            continue
        layer = _layer(node.inputs[0])
        if layer is None or not _last(node.inputs[1]):
            continue
        owner = layer.owner
        forwards = isinstance(owner, Obj) and owner.get("bidirectional", 7, False) is False
        first = isinstance(owner, Obj) and owner.get("batch_first", 4, False) is True
        rows = _rows(layer.inputs[0] if layer.inputs else None)
        if rows is not None and _of_one_length(rows):
            continue
        if forwards and first and rows is not None and rows.options.get("padding_side", "right") == "right":
            told.add(id(node.place[0]))
            text = "the state at the last place is that after the padding, for all rows but the longest"
            yield Answer(node.place, text, (rows.place,) if rows.place is not None else ())


def _of_one_length(padded: Node) -> bool:
    """True where all rows are made with one length that is written out: then nothing is filled up."""
    given = list(parts(padded.inputs[:1]))
    lengths = {n.shape.dims[0] if not n.shape.open and n.shape.dims else None for n in given}
    return len(lengths) == 1 and None not in lengths and all(_written_out(n) for n in given)


def _written_out(made: Node) -> bool:
    call = made.place[0] if made.place is not None else None
    return isinstance(call, ast.Call) and not any(isinstance(n, ast.Name) for a in call.args for n in ast.walk(a))


def _layer(value: Value) -> Node | None:
    at = value
    for _ in range(4):
        if not isinstance(at, Node):
            return None
        if at.op in RECURRENT:
            return at
        if at.op not in ("part", "either", "dropout") or not at.inputs:
            return None
        at = at.inputs[0]
    return None


def _last(index: Value) -> bool:
    """``[:, -1]``."""
    if not isinstance(index, tuple) or len(index) < 2 or index[1] != -1:
        return False
    return all(isinstance(i, Obj) and set(i.args) == {None} for i in (index[0], *index[2:]))


def _rows(value: Value) -> Node | None:
    """The padding that the layer's tokens come from."""
    at = value
    for _ in range(8):
        if not isinstance(at, Node):
            return None
        found = trail(at)
        if found is not None and found.root.op == "pad_sequence" and not found.symbols:
            return found.root if found.root.get("batch_first", 1, False) is True else None
        if at.op not in BEFORE or not at.inputs:
            return None
        at = at.inputs[0]
    return None
