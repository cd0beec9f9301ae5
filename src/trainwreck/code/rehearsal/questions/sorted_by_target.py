"""Batches cut, one after the other, from the order of the very numbers that are to be predicted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import names
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, carries
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.blocks import in_order
from trainwreck.code.rehearsal.questions.paths import RANDOM
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.core.row import Row

CASTS = frozenset(
    """tensor as_tensor from_numpy long to array asarray list tolist cuda cpu copy clone numpy flip flipud contiguous
    ascontiguousarray detach int""".split()
)
SPLITS = frozenset(["split", "chunk", "array_split", "tensor_split"])
VALUES = CASTS | {"float", "double", "astype", "neg"}
LAYERS = frozenset("linear conv1d conv2d conv3d embedding lstm gru rnn".split())
FAR = 10


class Order(Row):
    """Numbers of rows in the order of some values."""

    made: Node
    values: Node


def sorted_by_target(run: Rehearsing) -> Iterator[Answer]:
    """``for rows in argsort(y).split(64)``: each batch holds a narrow range of the targets, always the same ones."""
    if any(e.name == "shuffle" for e in run.tape) or any(n.op in ("shuffle", "permuted") for n in run.nodes):
        return
    for event in backwards(run):
        behind = list(ancestors(event.subject, through=carries))
        given = [n.inputs[0] for n in behind if n.op in LAYERS and n.inputs]
        inputs = {id(n) for n in ancestors(tuple(i for i in given if isinstance(i, Node) and not i.grad))}
        for node in behind:
            order = _picked(run, node) if id(node) not in inputs and not node.grad and event.turns else None
            if order is None or order.made.place is None or any(n.op == "param" for n in ancestors(order.values)):
                continue
            text = "batches are taken in order from rows that are sorted by what is to be predicted"
            yield Answer(order.made.place, text, (event.place,) if event.place is not None else ())
            return


def _picked(run: Rehearsing, node: Node) -> Order | None:
    """The order by which a batch of targets was picked, where it is the order of these targets."""
    order: Order | None = None
    if node.op == "batch" and isinstance(node.owner, Obj):
        whole = node.owner.get("dataset", 0)
        part = whole.get("indices", 1) if isinstance(whole, Obj) and whole.name == "Subset" else None
        order = _order(node.owner.options.get("sampler"), True)
        if order is None and part is not None and in_order(run, node.owner):
            order = _order(part, True)
        element = node.inputs[0] if node.inputs else None
        for _ in range(FAR):  # what the data set makes of one row
            if not isinstance(element, Node) or element.op in ("element", "getitem") or not element.inputs:
                break
            element = element.inputs[0]
        table = element.inputs[0] if isinstance(element, Node) and element.inputs else None
    elif node.op == "getitem" and len(node.inputs) > 1:
        order = _order(node.inputs[1], False)
        table = node.inputs[0]
    return order if order is not None and _bare(table) is _bare(order.values) else None


def _order(index: Value, piece: bool) -> Order | None:
    """What the numbers of a batch are a piece of; ``piece``: a loader cuts them itself."""
    for _ in range(FAR):
        if not isinstance(index, Node) or not index.inputs:
            return None
        sort = index.inputs[0] if index.op == "part" and index.inputs[1:] == (1,) else None
        if index.op == "argsort" or (isinstance(sort, Node) and sort.op == "sort"):
            values = sort.inputs[0] if isinstance(sort, Node) else index.inputs[0]
            flat = isinstance(values, Node) and (values.shape.open or len(values.shape.dims) == 1)
            return Order(index, values) if piece and flat and isinstance(values, Node) else None
        if index.op == "getitem" and len(index.inputs) > 1:
            chosen = index.inputs[1]
            if not isinstance(chosen, Obj) and _drawn(chosen):
                return None
            if isinstance(chosen, Obj):
                piece = piece or _by_turn(index)
            elif not isinstance(chosen, Node | int) or not _of_pieces(index.inputs[0]):
                return None
        elif index.op in SPLITS:
            piece = True
        elif index.op != "element" and index.op not in CASTS:
            return None
        if index.op == "element" and not _of_pieces(index.inputs[0]):
            return None
        index = index.inputs[0]
    return None


def _of_pieces(value: Value) -> bool:
    return isinstance(value, Node) and value.op in SPLITS


def _drawn(value: Value) -> bool:
    return isinstance(value, Node) and any(n.op in RANDOM for n in ancestors(value))


def _by_turn(cut: Node) -> bool:
    """True for a slice whose ends the loop around it counts up."""
    at = cut.place[0] if cut.place is not None else None
    used = names(at.slice) if isinstance(at, ast.Subscript) else set()
    return any(isinstance(t.node, ast.For) and names(t.node.target) & used for t in cut.turns)


def _bare(value: Value) -> Value:
    for _ in range(FAR):
        if not isinstance(value, Node) or value.op not in VALUES or not value.inputs:
            break
        value = value.inputs[0]
    return value


__all__ = ["sorted_by_target"]
