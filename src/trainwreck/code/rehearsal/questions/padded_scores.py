"""Scores over padded sequences: do positions count in them that hold no token, and that the loss itself leaves out?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.masks import padding
from trainwreck.code.rehearsal.questions.padded import left_out, padded
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, losses, users
from trainwreck.code.rehearsal.questions.terms import losses_of

PASSES = STRUCTURE | {"long", "int", "item", "bool"}
CHOSEN = frozenset(["argmax", "max", "topk"])
FILLS = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1}
DEEP = 40


def padding_scored(run: Rehearsing) -> Iterator[Answer]:
    """Predictions are compared with labels at each position, those of the padding too, and all of them are counted,
    while the loss ignores the number that the labels are padded with."""
    ignored = {loss.options.get("ignore_index", -100) for loss in losses(run, "cross_entropy", "nll_loss")}
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in ("eq", "ne") or node.grad or len(node.inputs) < 2 or node.place is None:
            continue
        for told_by, labels in (node.inputs[:2], node.inputs[1::-1]):
            number = _padding(labels)
            if isinstance(labels, Node) and not labels.shape.open and len(labels.shape.dims) > 2:
                continue  # pixels: nothing is filled up
            if number is None or number not in ignored or not _predicted(told_by) or left_out(told_by):
                continue
            if id(node.place[0]) in told or not _all_counted(run, node, labels):
                continue
            told.add(id(node.place[0]))
            text = f"positions that were filled with {number} count in this score, and the loss leaves them out"
            yield Answer(node.place, text)
            return


def _padding(labels: Value) -> int | None:
    """The number that rows of labels were filled up with; None where some were taken out on the way."""
    found = padded(labels)
    if found is not None:
        given = found.get("padding_value", 2, 0) if found.op == "pad_sequence" else None
        return given if type(given) is int else None
    at = labels
    for _ in range(DEEP):
        if not isinstance(at, Node) or at.op not in ("setitem", "batch", "to", "long", "from_numpy", "tensor", "cpu"):
            break
        at = at.inputs[0] if at.inputs else None
    if not isinstance(at, Node) or not any(n.op == "setitem" for n in near(labels, DEEP)):
        return None
    if at.op in ("full", "full_like", "new_full"):
        fill = at.get("fill_value", 1)
        return fill if type(fill) is int else None
    return FILLS.get(at.op)


def _predicted(value: Value) -> bool:
    """The class with the highest score of a network."""
    for node in ancestors(value, through=lambda n: n.op in PASSES or n.op == "part"):
        if node.op in CHOSEN:
            return any(n.op == "param" for n in ancestors(node))
    return False


def _all_counted(run: Rehearsing, hits: Node, labels: Value) -> bool:
    """True where the hits are averaged, or summed up and the labels counted, without a mask."""
    queue, seen, summed = [hits], {id(hits)}, False
    while queue and len(seen) < DEEP:
        at = queue.pop()
        for user in users(run).get(id(at), ()):
            if user.op == "mean":
                return not user.inputs[1:] or user.inputs[1] is None
            summed = summed or user.op == "sum"
            if user.op == "sum":
                continue
            if user.op not in PASSES or user.op in ("getitem", "masked_select"):
                return False
            if id(user) not in seen:
                seen.add(id(user))
                queue.append(user)
    scope = hits.place[1] if hits.place is not None else None
    both = {id(n) for v in (hits, labels) for n in parts(v)} | seen
    counted = (n for n in run.nodes if n.op == "numel" and n.place is not None and n.place[1] is scope)
    return summed and any(id(i) in both for n in counted for i in n.inputs[:1])


def diluted(run: Rehearsing) -> Iterator[Answer]:
    """Errors are multiplied by a mask of what is real, and averaged over all positions, the masked ones too: the more
    padding a batch has, the less it counts."""
    for event, found in losses_of(run):
        for term in found:
            over_all = [r for r in term.reductions if not r.inputs[1:] and not r.options]
            whole = over_all[0] if len(over_all) == 1 else None
            if whole is None or whole.op != "mean" or whole.place is None:
                continue
            product = whole.inputs[0] if whole.inputs else None
            if not isinstance(product, Node) or product.op != "mul":
                continue
            masks = [i for i in product.inputs if isinstance(i, Node) and not i.grad and padding(i) is False]
            if len(masks) == 1 and masks[0].shape.dims != () and _spans_rows(masks[0]):
                text = "errors of padding are set to zero, and averaged with all others: they dilute the loss"
                yield Answer(whole.place, text, (event.place,) if event.place is not None else ())
                return


def _spans_rows(mask: Node) -> bool:
    """True for one flag of each position of each sample."""
    return mask.shape.open or len(mask.shape.dims) > 1


__all__ = ["diluted", "padding_scored"]
