"""A softmax over positions that are all masked.

What: ``masked_fill(mask, -inf)`` before softmax, and a row (an empty text, all padding) in which nothing is left.
Why it matters: softmax of only -inf is NaN.
When it is fine: with a large finite number, or where every row keeps a position.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
import torch
def pool(h, ids, score):
    s = score(h).masked_fill(ids == 0, float("-inf"))  # expect # place
    return (s.softmax(1) * h).sum(1)
"""
GOOD = """
def pool(h):
    return h.mean(1)
"""


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("masked_fill", "masked_fill_", "where"):
        if "inf" in written(call.node):
            yield guess(__name__, call, "a row in which everything is masked has nothing left here")
            return
    for call in project.calls("MultiheadAttention", "scaled_dot_product_attention", "TransformerEncoder"):
        yield guess(__name__, call, "attention with a mask that can cover a whole row")
        return
