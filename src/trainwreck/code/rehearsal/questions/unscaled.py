"""Attention of several heads without a factor between the products and the softmax."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import PRODUCTS, STRUCTURE, trained

LEAST = 16
"""Sizes of a head below this leave the scores small without a factor."""
HEADS = 4
"""Axes of scores of several heads: samples, heads, queries, keys."""
KEEPS = STRUCTURE | {"chunk", "split", "unbind", "part", "getitem", "mul", "dropout"}
CALMS = frozenset("normalize layer_norm rms_norm norm softmax tanh div rsqrt sqrt pow clamp param batch_norm".split())
"""What keeps queries or keys at one length, or is a factor itself."""


def attention_unscaled(run: Rehearsing) -> Iterator[Answer]:
    """Queries and keys are projections, split into heads, and their product reaches the softmax as it is: its deviation
    grows with the root of the head's size (Vaswani et al., arXiv:1706.03762, section 3.2.1).

    Not said of attention with one head, which other families use without a factor (Luong et al.; non-local blocks), nor
    where the weights are drawn by the program itself: their scale may make up for it."""
    if any(e.name.endswith("_") and not e.turns and e.name in DRAWN for p in run.nodes if p.op == "param"
           for e in p.writes):  # fmt: skip
        return
    for node in trained(run):
        product = _product(node) if node.op == "softmax" else None
        if product is None or product.place is None:
            continue
        sides = [i for i in product.inputs if isinstance(i, Node)][:2]
        if len(sides) != 2 or not all(_projected(s) for s in sides):
            continue
        heads, width = (product.shape.dims[1:2] or (None,))[0], _width(sides[0])
        size = width / heads if isinstance(heads, int) and heads and width is not None else None
        if len(product.shape.dims) == HEADS and (size is None or size >= LEAST):
            text = "queries times keys go into the softmax without 1 / sqrt(size of a head): it saturates"
            yield Answer(product.place, text, (node.place,) if node.place is not None else ())
            return


DRAWN = frozenset(
    "normal_ uniform_ xavier_uniform_ xavier_normal_ trunc_normal_ kaiming_normal_ orthogonal_ mul_".split()
)


def _product(node: Node) -> Node | None:
    """The product that a softmax is of, with nothing but masks in between."""
    at: Value = node.inputs[0] if node.inputs else None
    for _ in range(12):
        if not isinstance(at, Node) or at.op in PRODUCTS:
            return at if isinstance(at, Node) else None
        if at.op not in STRUCTURE and at.op not in ("masked_fill", "where"):
            return None
        own = [i for i in at.inputs if isinstance(i, Node) and i.grad]
        at = own[0] if len(own) == 1 else None
    return None


def _width(side: Node) -> int | None:
    """How many numbers a token has before they are split into heads."""
    for node in ancestors(side, through=lambda n: n.op in KEEPS):
        if not node.shape.open and len(node.shape.dims) == HEADS - 1 and isinstance(width := node.shape.dims[-1], int):
            return width
    return None


def _projected(side: Node) -> bool:
    """True for what a linear layer gives, split into heads, and nothing scales."""
    way = list(ancestors(side, through=lambda n: n.op in KEEPS))
    linear = [n for n in way if n.op == "linear"]
    if len(linear) != 1 or any(n.op == "mul" or n.op in CALMS for n in way if n is not linear[0] and n.op != "param"):
        return False
    return not any(n.op in CALMS and n.op != "layer_norm" for n in near(side, 3))
