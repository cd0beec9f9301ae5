"""An order of the samples that is written for every epoch and never mixed: ``order = torch.arange(n)``."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import paths, trained

CASTS = frozenset(["tensor", "as_tensor", "from_numpy", "long", "to", "array", "asarray", "list", "tolist", "cuda"])
SPLITS = frozenset(["split", "chunk", "array_split", "tensor_split"])
COUNTS = frozenset(["len", "size", "attribute"])
FAR = 6


def counted_up(run: Rehearsing) -> Iterator[Answer]:
    """In each turn of an outer loop all numbers of rows are listed, as they come, and batches of training data are
    picked by pieces of that list. Nobody lists them but to mix them."""
    if any(e.name == "shuffle" for e in run.tape) or any(n.op in ("shuffle", "permuted") for n in run.nodes):
        return
    for event, node in trained(run):
        for path in paths(run, node):
            for step in path.nodes:
                index = step.inputs[1] if step.op == "getitem" and len(step.inputs) > 1 else None
                order = _order(index)
                if order is None or order.place is None or not order.turns or len(event.turns) <= len(order.turns):
                    continue
                if event.turns[: len(order.turns)] == order.turns:
                    text = "the order of the rows is made anew for each epoch, and it is always that of the data"
                    yield Answer(order.place, text, (event.place,) if event.place is not None else ())
                    return


def _order(index: Value) -> Node | None:
    """``arange(len(x))`` of which ``index`` is a piece."""
    if isinstance(index, tuple):
        index = index[0] if index else None
    piece = False
    for _ in range(FAR):
        if not isinstance(index, Node) or not index.inputs:
            return None
        if index.op == "arange":
            return index if piece and len(index.inputs) == 1 and _all_rows(index.inputs[0]) else None
        cut = index.inputs[1] if index.op == "getitem" and len(index.inputs) > 1 else None
        piece = piece or index.op in SPLITS or (isinstance(cut, Obj) and cut.kind == "builtins.slice")
        if index.op not in CASTS and index.op not in (*SPLITS, "getitem", "element"):
            return None
        index = next(iter(parts(index.inputs[0])), None) if not isinstance(index.inputs[0], Items) else None
    return None


def _all_rows(count: Value) -> bool:
    """True for how many there are, written or asked."""
    return isinstance(count, int) or (isinstance(count, Node) and count.op in COUNTS)


__all__ = ["counted_up"]
