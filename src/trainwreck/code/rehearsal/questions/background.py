"""Classes of boxes and the background: has each its own number, and an output?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds, given, losses
from trainwreck.code.rehearsal.questions.void_counted import passed_over

BOXES = re.compile(r"iou|anchor|bbox|boxes", re.IGNORECASE)
MOVES = STRUCTURE | frozenset(["batch", "element", "part", "stack", "getitem", "either", "long", "setitem"])
CHOICE = 3
"""Inputs of ``where(test, a, b)``."""


def met_by_a_class(run: Rehearsing) -> Iterator[Answer]:
    """What holds no object gets a number that the first class has as well, and the last output of the network belongs
    to no label: the classes were counted from the wrong end."""
    if not any(BOXES.search(walked.top.module.text) for walked in run.project.walked.values()):
        return
    ignored = {id(loss): number for loss, number, _, _ in passed_over(run)}
    for loss in losses(run, "cross_entropy", "nll_loss"):
        scores, target = given(loss, "input", 0), given(loss, "target", 1)
        if not isinstance(scores, Node) or not isinstance(target, Node) or scores.shape.open:
            continue
        count = scores.shape.dim(1) if len(scores.shape.dims) > 1 else None
        for node in ancestors(target, through=lambda n: n.op in MOVES):
            if node.op != "where" or len(node.inputs) != CHOICE or count is None or node.place is None:
                continue
            fills = [bounds(i) for i in node.inputs[1:]]
            for fill, labels in (fills, fills[::-1]):
                known = fill.low == fill.high and math.isfinite(labels.low) and math.isfinite(labels.high)
                apart = not labels.low <= fill.low <= labels.high or labels.low == labels.high
                if not known or apart or ignored.get(id(loss)) == fill.low or max(labels.high, fill.low) >= count - 1:
                    continue
                text = f"{fill.low:g} stands for no object and for a class here, and no label has the last of the "
                text += f"{count} outputs"
                yield Answer(node.place, text, (loss.place,) if loss.place is not None else ())
                return
