"""NaN that is taken out of values on their way to the loss: its origin stays hidden, and it comes back."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import RAW, core, trained

TESTS = frozenset(["isfinite", "isnan", "isinf"])
MASKED = frozenset(["softmax", "masked_fill", "masked_fill_", "div", "where", "log", "normalize", "nanmean"])
"""What can give NaN for a reason that is known: rows without keys, empty groups."""


def cleaned(run: Rehearsing) -> Iterator[Answer]:
    """``nan_to_num`` of what layers give, and samples that are left out where their loss is not finite."""
    told: set[int] = set()
    for node in trained(run):
        if node.place is None or id(node.place[0]) in told or not node.grad or not node.inputs:
            continue
        first = node.inputs[0]
        if node.op in ("nan_to_num", "nan_to_num_"):
            behind = near(first, 12) if isinstance(first, Node) else []
            if any(n.op in RAW for n in behind) and not any(n.op in MASKED for n in behind):
                told.add(id(node.place[0]))
                yield Answer(node.place, "NaN in the network is made finite here; where it comes from stays hidden")
        elif node.op in ("getitem", "masked_select") and len(node.inputs) > 1:
            own = {id(n) for n in core(first)}
            tested = [n for p in parts(node.inputs[1]) for n in near(p, 4) if n.op in TESTS]
            if any(id(c) in own for t in tested for i in t.inputs for c in core(i)):
                told.add(id(node.place[0]))
                yield Answer(node.place, "samples that are not finite are left out here; why they are stays hidden")
