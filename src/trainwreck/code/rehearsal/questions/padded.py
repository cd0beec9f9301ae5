"""Padding: where positions that hold no token count, in the loss, in an attention or in an average over the time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.attending import attention, blind_mask
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.masks import PADDING_WORDS, padding
from trainwreck.code.rehearsal.questions.roles import given, loss_place, losses, trained
from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis
from trainwreck.code.rehearsal.questions.trails import MOVES, trail
from trainwreck.code.rehearsal.reshaping import MASKS

DECODERS = frozenset(["transformer", "transformerdecoder", "transformerdecoderlayer"])
POOLS = frozenset(["mean", "max", "amax"])
GATHERED = frozenset(["mean", "sum", "max", "amax", "matmul", "bmm", "einsum", "cat", "stack", "multi_head_attention"])
"""What makes one vector, or other ones, of the positions of an encoder: no padding is left in it."""
HIDES = frozenset(["mul", "masked_fill", "where", "setitem", "div", "sub", "pack_padded_sequence"])
"""What may have taken the padding out before an average."""


def padding_counts(run: Rehearsing) -> Iterator[Answer]:
    """Targets that were padded meet a loss over positions that leaves none out."""
    for loss in losses(run, "cross_entropy", "nll_loss"):
        if loss.options.get("reduction", "mean") not in ("mean", "sum") or loss.options.get("weight") is not None:
            continue
        target = given(loss, "target", 1)
        filled = padded(target)
        if filled is None or left_out(given(loss, "input", 0)):
            continue
        value = filled.get("padding_value", 2, 0) if filled.op == "pad_sequence" else _filled(filled)
        ignored = loss.options.get("ignore_index", -100)
        if not isinstance(value, int | float) or not isinstance(ignored, int) or value == ignored:
            continue
        text = f"positions that were filled with {value} count in the loss"
        own = not _shared(loss, filled)
        place = filled.place if own and filled.get("padding_value", 2) is None else loss_place(loss)
        if place is not None:
            yield Answer(place, text, tuple(p for p in (filled.place, loss.place) if p is not None))


def padded(value: Value) -> Node | None:
    """The padding that targets come from; None where some were taken out or overwritten on the way."""
    at = value
    for _ in range(60):
        if isinstance(at, Node) and at.op == "either":
            known = [c for c in candidates(at) if c is not None]
            at = known[0] if len(known) == 1 else None
        if not isinstance(at, Node):
            return None
        if at.op == "pad_sequence" or _filled(at) is not None:
            return at
        if at.op == "getitem" and len(at.inputs) > 1:
            index = at.inputs[1] if isinstance(at.inputs[1], tuple) else (at.inputs[1],)
            if any(isinstance(i, Node) for i in index):
                return None
        elif at.op not in MOVES:
            return None
        at = at.inputs[0] if at.inputs else None
    return None


def _filled(made: Node) -> int | None:
    """What rows are filled up with before they become a tensor: ``row + [PAD] * (longest - len(row))``."""
    rows = made.inputs[0] if made.op in ("tensor", "as_tensor", "LongTensor") and made.inputs else None
    row = rows.items[0] if isinstance(rows, Items) and rows.items else None
    written = row.place[0] if isinstance(row, Items | Node) and row.place is not None else None
    if not isinstance(written, ast.BinOp) or not isinstance(written.op, ast.Add):
        return None
    times = written.right
    if not isinstance(times, ast.BinOp) or not isinstance(times.op, ast.Mult):
        return None
    sides = (times.left, times.right)
    one = any(isinstance(side, ast.List) and len(side.elts) == 1 for side in sides)
    longest = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "len"
                  for side in sides for n in ast.walk(side))  # fmt: skip
    last: Value = row
    for _ in range(3):
        if isinstance(last, Node) and last.op in ("add", "mul") and len(last.inputs) > 1:
            last = next((i for i in last.inputs[::-1] if isinstance(i, Items)), last.inputs[1])
        elif isinstance(last, Items) and last.items:
            last = last.items[-1]
    return last if one and longest and isinstance(last, int) and not isinstance(last, bool) else None


def left_out(logits: Value) -> bool:
    """True where positions are selected, or sequences are packed, before the loss."""
    # where rows are padded again their padding is back, and the state behind the last token has no positions
    for node in ancestors(logits, through=lambda n: n.op not in ("pad_packed_sequence", "hidden")):
        if node.op in ("pack_padded_sequence", "masked_select", "pack_sequence"):
            return True
        if node.op == "getitem" and node.grad and len(node.inputs) > 1:
            index = node.inputs[1] if isinstance(node.inputs[1], tuple) else (node.inputs[1],)
            if any(isinstance(i, Node) and (i.op in MASKS or i.shape.dims or i.shape.open) for i in index):
                return True
    return False


def _shared(loss: Node, padded: Node) -> bool:
    """True where the inputs of the network come from the same padding."""
    return any(n is padded for n in ancestors(given(loss, "input", 0)))


# ---------------------------------------------------------------------- in the network
def padding_seen(run: Rehearsing) -> Iterator[Answer]:
    """A mask of the padding is known, and an attention or an average over the time goes without it."""
    masks = _masks(run)
    if not masks:
        return
    told: set[int] = set()
    for node in trained(run):
        if node.place is None or id(node.place[0]) in told:
            continue
        seen = _attends(node) or _averages(run, node) or _summed_whole(node)
        roots = _fed(node) if seen else set()
        mask = next((m for m, root in masks if root in roots), None)
        if not seen or mask is None or (_attends(node) and _given(node, mask)):
            continue
        told.add(id(node.place[0]))
        text = f"the padding is known, and {seen} goes over it as if it held tokens"
        yield Answer(node.place, text, (mask.place,) if mask.place is not None else ())


def memory_padding_seen(run: Rehearsing) -> Iterator[Answer]:
    """A decoder that attends over what an encoder made of padding, which the encoder itself was told of."""
    for node in trained(run):
        if node.op not in DECODERS or node.place is None or "memory_key_padding_mask" in node.options:
            continue
        told = "src_key_padding_mask" in node.options
        memory = node.inputs[1] if node.op != "transformer" and len(node.inputs) > 1 else None
        told = told or any(
            n.options.get("src_key_padding_mask") is not None
            for n in ancestors(memory, through=lambda n: n.op not in GATHERED)
        )
        if told and not any(n in node.options for n in ("memory_mask", "memory_is_causal")):
            text = "the encoder is told of the padding, and the decoder attends over it without memory_key_padding_mask"
            yield Answer(node.place, text)
            return


def _masks(run: Rehearsing) -> list[tuple[Node, int]]:
    """Masks of padding that were computed, each with the tokens (by ``id``) that it was made from."""
    if "padding-masks" not in run.memo:
        found: list[tuple[Node, int]] = []
        for node in run.nodes:
            if node.op in ("eq", "ne", "lt", "ge", "gt", "le") and not node.grad and padding(node) is not None:
                root = trail(node.inputs[0])
                if root is not None and node.op in ("eq", "ne"):
                    found.append((node, id(root.root)))
        run.memo["padding-masks"] = found
    kept: list[tuple[Node, int]] = run.memo["padding-masks"]
    return kept


def _fed(node: Node) -> set[int]:
    """The tokens (by ``id``) whose embeddings stand behind a value, one for each position of it."""
    roots: set[int] = set()
    for inner in ancestors(node, through=lambda n: n is node or n.grad):
        if inner.op == "embedding" and inner.inputs:
            found = trail(inner.inputs[0])
            if found is not None:
                roots.add(id(found.root))
    return roots


def _attends(node: Node) -> str:
    """Words for an attention that is given no mask at all."""
    if attention(node) is not False or any(w in node.options for w in (*PADDING_WORDS, "mask", "attn_mask")):
        return ""
    if blind_mask(node) is not None:
        return ""
    return "this attention"


def _given(node: Node, mask: Node) -> bool:
    """True where the mask is among what the attention itself is given."""
    values = [*node.inputs, *node.options.values()]
    return any(n is mask for v in values if isinstance(v, Node) and not v.grad for n in ancestors(v))


def _averages(run: Rehearsing, node: Node) -> str:
    """Words for a mean or maximum over the positions of tokens, none of which was taken out before."""
    inner = node.inputs[0] if node.op in POOLS and node.inputs else None
    if not isinstance(inner, Node) or not inner.grad or len(inner.shape.dims) > 3:
        return ""
    whole = not inner.shape.open
    if whole and len(inner.shape.dims) != 3:
        return ""
    dim = along(node)
    samples = sample_axis(run, inner)
    if not isinstance(dim, int) or samples not in (0, 1):
        return ""
    if (dim % 3 if whole or dim == -2 else dim) != 1 - samples:
        return ""  # of tokens that were looked up in a table it is known that there are three axes, if two are
    if any(n.op in HIDES for n in near(inner, 3)) and not (node.op == "mean" and _set_to_zero(inner)):
        return ""
    return "this average" if node.op == "mean" else "this maximum"


def _set_to_zero(value: Node) -> bool:
    """``x * mask`` of the padding: it adds nothing to a sum, and a mean is divided by its positions all the same."""
    return value.op == "mul" and any(isinstance(i, Node) and padding(i) is False for i in value.inputs[:2])


def _summed_whole(node: Node) -> str:
    """Words for ``x.sum(1) / mask.sum(1)`` of which only the count leaves the padding out."""
    if node.op != "div" or len(node.inputs) < 2 or not all(isinstance(i, Node) for i in node.inputs[:2]):
        return ""
    total, count = (i for i in node.inputs[:2] if isinstance(i, Node))
    while count.op in ("clamp", "clamp_min", "maximum", "float", "unsqueeze", "to") and isinstance(
        count.inputs[0], Node
    ):
        count = count.inputs[0]
    summed = total.inputs[0] if total.op == "sum" and total.inputs else None
    mask = count.inputs[0] if count.op == "sum" and count.inputs else None
    if not isinstance(summed, Node) or not isinstance(mask, Node) or padding(mask) is not False or not summed.grad:
        return ""
    behind = near(summed, 6)
    if len(summed.shape.dims) != 3 or summed.shape.open or any(n.op in HIDES for n in behind[:4]):
        return ""
    filled = any(n.op in ("layer_norm", "layernorm") or attention(n) is not None for n in behind)
    return "this sum" if filled else ""
