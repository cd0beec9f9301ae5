"""Masks of attention: what they hide, by what they are made of and how they are applied."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.marked_masks import marked
from trainwreck.code.rehearsal.questions.roles import PRODUCTS, STRUCTURE, trained, users
from trainwreck.code.rehearsal.questions.tokens import shifts
from trainwreck.code.rehearsal.questions.trails import trail
from trainwreck.core.row import Row

LOW = -1e3
"""A fill below it takes an element out of a softmax: exp(-1000) is 0 in float32."""
FLIPS = frozenset(["invert", "not", "logical_not", "bitwise_not"])
SOFT = frozenset(["softmax", "scaled_dot_product_attention"])
REPAIRS = frozenset("nan_to_num masked_fill where".split())
"""What is done about rows without keys: of the weights, or of what is made with them."""
FILLERS = frozenset("cat concat setitem pad".split())
"""The same, of the weights alone."""
PADDING_WORDS = ("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask")


class Hidden(Row):
    """A softmax's scores of which some are hidden: ``mask`` is true on those that are, or false on them."""

    at: Node
    mask: Node
    true: bool
    fill: float


def hidings(run: Rehearsing) -> list[Hidden]:
    """Every fill of scores on the way of a backward."""
    if "hidings" not in run.memo:
        run.memo["hidings"] = [h for node in trained(run) for h in _hiding(run, node)]
    found: list[Hidden] = run.memo["hidings"]
    return found


def _hiding(run: Rehearsing, node: Node) -> Iterator[Hidden]:
    inputs = node.inputs
    if node.op in ("masked_fill", "where") and len(inputs) >= 3:
        if node.op == "masked_fill":
            mask, fill, true = inputs[1], _number(inputs[2]), True
        else:
            low, other = _number(inputs[1]), _number(inputs[2])
            mask, fill, true = inputs[0], low if low is not None else other, low is not None
        if fill is not None and fill <= LOW and isinstance(mask, Node) and _softened(run, node):
            yield Hidden(node, mask, true, fill)
    elif node.op == "setitem" and len(inputs) >= 3:
        fill = _number(inputs[1])
        if fill is not None and fill <= LOW and isinstance(inputs[2], Node) and _softened(run, node):
            yield Hidden(node, inputs[2], True, fill)
    elif node.op == "add" and len(inputs) == 2:
        for side in inputs:
            inner = _additive(side)
            if inner is not None and _softened(run, node):
                yield Hidden(node, inner[0], inner[1], inner[2])


def _additive(value: Value) -> tuple[Node, bool, float] | None:
    """A mask of numbers that is added: made by ``masked_fill(mask, -inf)``, or ``triu(full(-inf))``."""
    if not isinstance(value, Node) or value.grad:
        return None
    for node in ancestors(value, through=lambda n: n.op in STRUCTURE or n.op in ("buffer", "either")):
        if node.op == "masked_fill" and len(node.inputs) >= 3 and isinstance(node.inputs[1], Node):
            fill = _number(node.inputs[2])
            if fill is not None and fill <= LOW:
                return node.inputs[1], True, fill
        if node.op == "mul" and len(node.inputs) == 2:
            fill = next((f for i in node.inputs if (f := _number(i)) is not None), None)
            mask = next((i for i in node.inputs if isinstance(i, Node) and _number(i) is None), None)
            if fill is not None and fill <= LOW and mask is not None:
                return mask, True, fill  # ``mask * -1e9``
            below = mask is not None and mask.op == "sub" and len(mask.inputs) == 2 and mask.inputs[1] in (1, 1.0)
            if fill is not None and fill >= -LOW and below and mask is not None and isinstance(mask.inputs[0], Node):
                return mask.inputs[0], False, -fill  # ``(mask - 1) * 1e9``
        if node.op in ("triu", "tril") and node.inputs and isinstance(node.inputs[0], Node):
            full = node.inputs[0]
            fill = _number(full.inputs[1]) if full.op == "full" and len(full.inputs) > 1 else None
            if fill is not None and fill <= LOW:
                return node, True, fill
    return None


def _number(value: Value) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, Node) and value.op == "attribute" and value.name == "min":
        return -3e38  # torch.finfo(dtype).min
    if isinstance(value, Node) and value.op in ("tensor", "full_like") and value.inputs:
        inner = value.inputs[-1] if value.op == "full_like" else value.inputs[0]
        return float(inner) if isinstance(inner, int | float) and not isinstance(inner, bool) else None
    return None


def _softened(run: Rehearsing, node: Node) -> bool:
    """True where a softmax follows."""
    at = [node]
    for _ in range(30):
        if not at:
            return False
        value = at.pop()
        for user in users(run).get(id(value), ()):
            if user.op in ("softmax", "log_softmax"):
                return True
            if user.op in STRUCTURE or user.op in ("add", "sub", "mul", "div", "masked_fill", "where", "either"):
                at.append(user)
    return False


def triangle(mask: Value, depth: int = 0) -> tuple[str, int, bool] | None:
    """(``tril`` or ``triu``, the diagonal, whether it is negated) of a mask; None where it is none."""
    if not isinstance(mask, Node) or depth > 20:
        return None
    if mask.op in ("tril", "triu"):
        made = mask.inputs[0] if mask.inputs else None
        if isinstance(made, Node) and made.op not in ("ones", "ones_like", "full", "new_ones"):
            return None
        rest = mask.inputs[1 : len(mask.inputs) - len(mask.options)]
        diagonal = mask.options.get("diagonal", rest[0] if rest else 0)
        return (mask.op, diagonal, False) if isinstance(diagonal, int) else None
    inner = mask.inputs[0] if mask.inputs else None
    if mask.op in FLIPS or (mask.op == "eq" and mask.inputs[1:2] in ((0,), (False,))):
        found = triangle(inner, depth + 1)
        return (found[0], found[1], not found[2]) if found is not None else None
    if mask.op == "sub" and len(mask.inputs) == 2 and mask.inputs[0] == 1:
        found = triangle(mask.inputs[1], depth + 1)
        return (found[0], found[1], not found[2]) if found is not None else None
    if mask.op in ("and", "mul", "logical_and", "bitwise_and", "or", "logical_or", "bitwise_or"):
        # what is allowed has to be allowed by both, what is hidden is hidden by either
        sides = [f for i in mask.inputs[:2] if (f := triangle(i, depth + 1)) is not None]
        lower = len(sides) == 1 and (sides[0][0] == "tril") != sides[0][2]
        return sides[0] if len(sides) == 1 and lower == (mask.op not in ("or", "logical_or", "bitwise_or")) else None
    whole = mask.op == "ne" and mask.inputs[1:2] == (0,)
    if mask.op in STRUCTURE or mask.op in ("buffer", "bool", "eq") or whole:
        return None if mask.op == "eq" and mask.inputs[1:2] != (1,) else triangle(inner, depth + 1)
    return None


def _drawn(mask: Node) -> Place | None:
    """Where the triangle is made."""
    return next((n.place for n in ancestors(mask) if n.op in ("tril", "triu")), None)


def empty_rows(run: Rehearsing) -> Iterator[Answer]:
    """A triangle that hides all of the first or last row of an attention."""
    for hidden in hidings(run):
        found = triangle(hidden.mask)
        if found is None or hidden.fill > -math.inf or hidden.at.place is None or repaired(run, hidden.at):
            continue
        kind, diagonal, negated = found
        upper = (kind == "triu") != negated
        # the hidden ones start at this diagonal (upper), or end at it (lower)
        edge = diagonal if not negated else diagonal + (1 if kind == "tril" else -1)
        if hidden.true and upper and edge <= 0:
            place = _drawn(hidden.mask) or hidden.at.place
            yield Answer(place, "the mask takes the diagonal too: the first row has nothing left for the softmax")
        elif not hidden.true and not upper and edge < 0:
            place = _drawn(hidden.mask) or hidden.at.place
            yield Answer(place, "the mask leaves the diagonal out: the first row has nothing left for the softmax")


def repaired(run: Rehearsing, scores: Node) -> bool:
    """True where something is done about rows of a softmax, or of what it gives, before they go on."""
    table, at = users(run), [scores]
    soft, weights = scores.op in SOFT, True
    for _ in range(5):
        at = [u for node in at for u in table.get(id(node), ())]
        if soft and any(u.op in REPAIRS or (weights and u.op in FILLERS) for u in at):
            return True
        soft = soft or any(u.op in SOFT for u in at)
        weights = weights and not any(u.op in PRODUCTS for u in at)
        at = [u for u in at if u.op in STRUCTURE or u.op in PRODUCTS or u.op in SOFT or u.op == "dropout"]
    return False


def turned_round(run: Rehearsing) -> Iterator[Answer]:
    """A mask that hides the past and keeps the future, or the tokens and keeps the padding."""
    backwards = any(shift.ahead < 0 for shift in shifts(run))  # trained on the token before: it reads from the end
    for hidden in hidings(run):
        if hidden.at.place is None:
            continue
        found = triangle(hidden.mask)
        if found is not None:
            kind, diagonal, negated = found
            upper = (kind == "triu") != negated
            if upper is not hidden.true and abs(diagonal) <= 1 and not backwards:
                yield Answer(hidden.at.place, "the past is hidden here, and the future is kept")
            continue
        marks = padding(hidden.mask)
        if marks is not None and marks is not hidden.true:
            yield Answer(hidden.at.place, "the tokens are hidden here, and the padding is kept")
    for node in trained(run):
        for word in PADDING_WORDS:
            if word in node.options and padding(node.options[word]) is False and node.place is not None:
                yield Answer(node.place, f"{word} hides what is True, and the tokens are True here")
        if node.op == "multiheadattention" and PADDING_WORDS[0] not in node.options:
            given = [i for i in node.inputs if not (isinstance(i, Node) and i.op == "param")]
            if len(given) > 3 and padding(given[3]) is False and node.place is not None:
                yield Answer(node.place, f"{PADDING_WORDS[0]} hides what is True, and the tokens are True here")
        mask = node.options.get("attn_mask") if node.op == "scaled_dot_product_attention" else None
        if isinstance(mask, Node) and node.place is not None and not _numbers(mask) and padding(mask) is True:
            yield Answer(node.place, "attn_mask keeps what is True, and the padding is True here")


def _numbers(mask: Node) -> bool:
    """True for a mask that may be one of numbers, which are added to the scores."""
    moved = ancestors(mask, through=lambda n: n.op in STRUCTURE)
    return any(n.op in ("float", "half", "double", "bfloat16", "to", "type", "type_as") for n in moved)


def padding(mask: Value, depth: int = 0) -> bool | None:
    """True if the mask is true on padding, False if it is true on tokens, None where it can't be told."""
    if not isinstance(mask, Node) or depth > 20:
        return None
    inner = mask.inputs[0] if mask.inputs else None
    if mask.op in ("eq", "ne") and len(mask.inputs) == 2:
        other = mask.inputs[1]
        if isinstance(other, int | float) and not isinstance(other, bool):
            found = padding(inner, depth + 1)
            if found is not None and other in (0, 1):
                return found if (mask.op == "eq") == (other == 1) else not found
        if isinstance(other, int) and not isinstance(other, bool) and other == 0 and _tokens(inner):
            return mask.op == "eq"
        return None
    if mask.op in ("gt", "le") and mask.inputs[1:] in ((0,), (0.0,)) and _tokens(inner):
        return mask.op == "le"  # ``ids > 0``
    if mask.op in ("lt", "le", "gt", "ge") and len(mask.inputs) == 2:
        first, second = (_counts(i) for i in mask.inputs)
        if first == second or not isinstance(mask.inputs[1 if first else 0], Node):
            return None  # neither are positions, or the number is written: the same places of each row
        beyond = mask.op in ("gt", "ge")
        return beyond if first else not beyond
    if mask.op in FLIPS or (mask.op == "sub" and len(mask.inputs) == 2 and mask.inputs[0] == 1):
        found = padding(mask.inputs[-1], depth + 1)
        return None if found is None else not found
    if mask.op in STRUCTURE or mask.op in ("buffer", "bool", "float", "batch"):
        return padding(inner, depth + 1)
    if mask.op in ("stack", "cat", "concat") and mask.inputs:
        rows = {padding(n, depth + 1) for n in parts(mask.inputs[0])}
        return rows.pop() if len(rows) == 1 else None
    return marked(mask)


def _tokens(value: Value) -> bool:
    """True for whole numbers that come from the data."""
    found = trail(value)
    if found is None:
        return False
    rows = found.root.inputs[0] if found.root.op in ("tensor", "as_tensor") and found.root.inputs else None
    many = isinstance(rows, Items) and rows.more and rows.kind == "list"
    return many or any(n.op in ("batch", "pad_sequence") for n in ancestors(value))


def _counts(value: Value) -> bool:
    """True for positions 0, 1, 2, ..."""
    for node in ancestors(value, through=lambda n: n.op in STRUCTURE or n.op == "either"):
        if node.op == "arange":
            return True
    return False
