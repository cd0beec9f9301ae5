"""Losses of single elements of which a mask keeps some: those that count, or those that are to be ignored?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import core, trained

LOSSES = frozenset(["cross_entropy", "nll_loss"])
IGNORED = pattern(r"(^|_)(pad|padding|ignored?|void|unlabell?ed|masked)(_|$|id|idx|index)", re.IGNORECASE)
"""Names of values that stand where there is nothing to learn."""
PASSES = frozenset(
    """float double to type long int bool view reshape flatten ravel unsqueeze squeeze getitem contiguous
    transpose""".split()
)
VOID = 255
"""The value of pixels that nobody labelled in palettes of 8 bits (PASCAL VOC, Cityscapes)."""
MAX_STEPS = 10


def only_ignored(run: Rehearsing) -> Iterator[Answer]:
    """``nll[labels == IGNORE].mean()``: just what is to be left out is learned from."""
    told: set[int] = set()
    for node in trained(run):
        chosen = _chosen(node)
        if chosen is None:
            continue
        values, mask = chosen
        if not core(values) or not all(n.op in LOSSES for n in core(values)):
            continue
        found = _positive(mask)
        if found is None or found.place is None or id(found.place[0]) in told:
            continue
        if any(_void(found, loss) for loss in core(values)):
            told.add(id(found.place[0]))
            text = "this mask is true where there is nothing to learn, and only these positions are kept"
            yield Answer(found.place, text, (node.place,) if node.place is not None else ())


def _chosen(node: Node) -> tuple[Node, Value] | None:
    """The losses and the mask that keeps some of them."""
    if len(node.inputs) < 2 or not node.grad:
        return None
    one, other = node.inputs[:2]
    if node.op in ("getitem", "masked_select") and isinstance(one, Node) and one.grad:
        return one, other
    if node.op == "mul" and isinstance(one, Node) and isinstance(other, Node) and one.grad != other.grad:
        return (one, other) if one.grad else (other, one)
    return None


def _positive(mask: Value) -> Node | None:
    """The comparison ``== c`` that the mask is; None for its opposite and for others."""
    straight = True
    for _ in range(MAX_STEPS):
        if not isinstance(mask, Node) or not mask.inputs:
            return None
        if mask.op in ("eq", "ne"):
            return mask if straight is (mask.op == "eq") else None
        if mask.op in ("invert", "logical_not"):
            straight = not straight
        elif mask.op == "sub" and mask.inputs[0] == 1 and len(mask.inputs) > 1:
            straight, mask = not straight, mask.inputs[1]
            continue
        elif mask.op not in PASSES:
            return None
        mask = mask.inputs[0]
    return None


def _void(test: Node, loss: Node) -> bool:
    """True for a comparison of the labels with a number that no class has, or with one that is named so."""
    if len(test.inputs) < 2 or test.place is None:
        return False
    labels, value = test.inputs[:2] if isinstance(test.inputs[0], Node) else test.inputs[1::-1]
    if not isinstance(value, int) or isinstance(value, bool) or not isinstance(labels, Node):
        return False
    if value < 0 or value == VOID:
        return True
    names = [n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(test.place[0])
             if isinstance(n, ast.Name | ast.Attribute)]  # fmt: skip
    return value in (0, loss.options.get("ignore_index")) and any(IGNORED.search(n) for n in names)


def real_left_out(run: Rehearsing) -> Iterator[Answer]:
    """``labels[ids != PAD] = -100``: what is real is taken out of the loss, and the padding is left."""
    told: set[int] = set()
    for loss in trained(run):
        if loss.op not in LOSSES or len(loss.inputs) < 2:
            continue
        ignored = loss.options.get("ignore_index", loss.owner.get("ignore_index", 2) if loss.owner else None)
        ignored = -100 if ignored is None else ignored
        for node in ancestors(loss.inputs[1], through=lambda n: n.op in PASSES or n.op in FILLS or n.op in MOVES):
            test = _filled_where(node, ignored)
            if test is None or test.place is None or node.place is None or id(node.place[0]) in told:
                continue
            if _real(test):
                told.add(id(node.place[0]))
                text = "the labels of what is real are set to the value that the loss ignores, not those of the padding"
                yield Answer(node.place, text, (loss.place,) if loss.place is not None else ())


FILLS = frozenset(["setitem", "masked_fill", "masked_fill_", "where"])
MOVES = frozenset(["batch", "element", "pad_sequence", "stack", "clone", "part"])


def _filled_where(node: Node, ignored: Value) -> Node | None:
    """The comparison that says where labels become the ignored value."""
    if node.op == "setitem" and len(node.inputs) > 2 and node.inputs[1] == ignored:
        mask = node.inputs[2]
    elif node.op in ("masked_fill", "masked_fill_") and len(node.inputs) > 2 and node.inputs[2] == ignored:
        mask = node.inputs[1]
    else:
        return None
    return mask if isinstance(mask, Node) and mask.op in ("ne", "gt") and len(mask.inputs) > 1 else None


def _real(test: Node) -> bool:
    """True for ``ids > 0`` of numbers that were padded with zero, and for ``ids != PAD``."""
    value = test.inputs[1]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0 or test.place is None:
        return False
    names = [n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(test.place[0])
             if isinstance(n, ast.Name | ast.Attribute)]  # fmt: skip
    if test.op == "ne":
        return any(IGNORED.search(n) for n in names)
    padded = any(n.op == "pad_sequence" and not n.get("padding_value", 2, 0) for n in near(test.inputs[0], 6))
    return value == 0 and padded


__all__ = ["only_ignored", "real_left_out"]
