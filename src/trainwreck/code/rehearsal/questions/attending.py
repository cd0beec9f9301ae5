"""Attention and convolution over tokens: do they see what comes later?"""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors

STACKS = frozenset(["transformerencoder", "transformerencoderlayer", "transformerdecoder", "transformerdecoderlayer"])


def convolved(node: Node) -> bool | None:
    """True for a convolution over time that sees nothing that comes later, False for one that does, else None."""
    layer = node.owner
    given = node.inputs[0] if node.inputs else None
    if layer is None or layer.name != "Conv1d" or not isinstance(given, Node):
        return None
    kernel, own, dilation = layer.get("kernel_size", 2), layer.get("padding", 4, 0), layer.get("dilation", 5, 1)
    if isinstance(kernel, int) and kernel > 1 and own == 0 and isinstance(dilation, Node) and given.op == "pad":
        pads = given.options.get("pad", (*given.inputs[1:2], None)[0])
        ends = pads if isinstance(pads, tuple) and len(pads) > 1 else (None, None)
        far = isinstance(ends[0], Node) and ends[0].op == "mul" and dilation in ends[0].inputs
        reach = ends[0] is dilation if kernel == 2 else far and kernel - 1 in ends[0].inputs
        return True if reach and ends[1] == 0 else None
    if not all(isinstance(n, int) for n in (kernel, own, dilation)) or kernel == 1:
        return True if kernel == 1 and own == 0 else None
    if own != 0:
        return None  # what is too much may be cut off afterwards
    amounts = given.options.get("pad", (*given.inputs[1:2], None)[0]) if given.op in ("pad", "constantpad1d") else None
    if not isinstance(amounts, tuple) or len(amounts) < 2 or not all(isinstance(n, int) for n in amounts[:2]):
        return None
    if sum(amounts[:2]) != (kernel - 1) * dilation:
        return None
    return bool(amounts[1] == 0)


def cropped(node: Node, behind: list[Node]) -> tuple[Node, int] | None:
    """Where the output of a convolution that pads both ends of the time is cut to the length of its input, and how far
    it sees ahead after that; None where that is not known, or the output is used otherwise too.

    Output ``j`` sees the inputs from ``j - padding`` to ``j - padding + (kernel - 1) * dilation``."""
    layer = node.owner
    if layer is None or layer.name != "Conv1d" or node.shape.open:
        return None
    kernel, own, dilation = layer.get("kernel_size", 2), layer.get("padding", 4, 0), layer.get("dilation", 5, 1)
    stride = layer.get("stride", 3, 1)
    numbers = [n[0] if isinstance(n, tuple) and len(n) == 1 else n for n in (kernel, own, dilation, stride)]
    if not all(isinstance(n, int) for n in numbers) or numbers[3] != 1 or numbers[1] == 0:
        return None
    kernel, own, dilation = (n for n in numbers[:3] if isinstance(n, int))
    users = [n for n in behind if any(i is node for i in n.inputs)]
    cut = users[0] if len(users) == 1 and users[0].op == "getitem" and len(users[0].inputs) > 1 else None
    index = cut.inputs[1] if cut is not None and isinstance(cut.inputs[1], tuple) else ()
    whole = all(i is Ellipsis or (isinstance(i, Obj) and i.args[:2] == (None, None)) for i in index[:-1])
    last = index[-1] if index and (Ellipsis in index or len(index) == len(node.shape.dims)) else None
    if cut is None or not whole or not isinstance(last, Obj) or last.kind != "builtins.slice":
        return None
    begin, end, step = (*last.args, None, None, None)[:3]
    begin = 0 if begin is None else begin
    if not isinstance(begin, int) or step not in (None, 1):
        return None
    if begin < 0:
        length = node.shape.dims[-1]
        if end is not None or not isinstance(length, int):
            return None
        begin += length
    kept, given = cut.shape.dims[-1:], node.inputs[0].shape.dims[-1:] if isinstance(node.inputs[0], Node) else ()
    if end is not None and kept != given and begin > 0:
        return None
    return cut, begin - own + (kernel - 1) * dilation


def attention(node: Node) -> bool | None:
    """True for an attention that is masked, False for one that sees everything, None for anything else."""
    if node.op == "scaled_dot_product_attention":
        rest = node.inputs[3 : len(node.inputs) - len(node.options)]
        causal = node.options.get("is_causal", rest[2] if len(rest) > 2 else False)
        mask = node.options.get("attn_mask", rest[0] if rest else None)
        return causal is not False or mask is not None
    if node.op == "transformer":
        data = [i for i in node.inputs if not (isinstance(i, Node) and i.op == "param")]
        named = [node.options.get(w) for w in ("tgt_mask", "tgt_is_causal")]
        return len(data) - len(node.options) > 3 or any(h is not None and h is not False for h in named)
    if node.op == "multiheadattention" or node.op in STACKS:
        words = ("attn_mask", "mask", "src_mask", "tgt_mask", "is_causal", "tgt_is_causal")
        held = [node.options.get(w) for w in words if w in node.options]
        place = 5 if node.op == "multiheadattention" else 2 if node.op.startswith("transformerdecoder") else 1
        data = [i for i in node.inputs if not (isinstance(i, Node) and i.op == "param")]
        return any(h is not None and h is not False for h in held) or len(data) > place
    if node.op == "softmax" and node.inputs and isinstance(node.inputs[0], Node):
        at, masked = node.inputs[0], False
        for _ in range(20):
            if at.op in ("matmul", "einsum", "bmm", "baddbmm"):
                own = isinstance(at.inputs[0], Node) and at.inputs[0].grad
                return masked if own or at.op == "einsum" else None
            if at.op in ("masked_fill", "where") and _blind_to_time(_mask(at)):
                pass  # it hides padding, or other documents, and nothing that comes later
            elif at.op in ("masked_fill", "where", "setitem") or (at.op in ("add", "sub") and _tensors(at) > 1):
                masked = True
            following = [i for i in at.inputs if isinstance(i, Node) and i.grad]
            if not following:
                return None
            at = following[0]
    return None


def blind_mask(node: Node) -> Node | None:
    """Of a softmax over scores: the mask, where it hides nothing that comes later."""
    at = node.inputs[0] if node.op == "softmax" and node.inputs else None
    for _ in range(12):
        if not isinstance(at, Node):
            return None
        if at.op in ("masked_fill", "where"):
            mask = _mask(at)
            while isinstance(mask, Node) and mask.op in VIEWS and mask.inputs and isinstance(mask.inputs[0], Node):
                mask = mask.inputs[0]
            return mask if isinstance(mask, Node) and _blind_to_time(mask) else None
        if at.op == "add":
            fixed = [i for i in at.inputs if isinstance(i, Node) and not i.grad]
            filled = [n for f in fixed for n in ancestors(f) if n.op == "masked_fill"]
            mask = filled[0].inputs[1] if filled and len(filled[0].inputs) > 1 else None
            tests = [n for n in ancestors(mask) if n.op in ("eq", "ne")] if _blind_to_time(mask) else []
            if tests:
                return tests[0]
        at = next((i for i in at.inputs if isinstance(i, Node) and i.grad), None)
    return None


def handed_mask(node: Node) -> Node | None:
    """Of an attention of torch: the mask that it is given, before it was reshaped."""
    mask = node.options.get("attn_mask", node.options.get("mask"))
    while isinstance(mask, Node) and mask.op in VIEWS and mask.inputs and isinstance(mask.inputs[0], Node):
        mask = mask.inputs[0]
    return mask if isinstance(mask, Node) and mask.place is not None else None


def _mask(fill: Node) -> Value:
    return fill.inputs[1 if fill.op == "masked_fill" else 0] if len(fill.inputs) > 1 else None


VIEWS = frozenset(["unsqueeze", "invert", "not", "logical_not", "getitem", "view", "expand", "bool"])
ORDERED = frozenset("tril triu tril_ triu_ arange lt le gt ge cumsum either setitem tri linspace sort".split())
"""What may give a mask that knows which token comes later."""


def _blind_to_time(mask: Value) -> bool:
    """True for a mask made of nothing but equalities of what stands in the batch."""
    if not isinstance(mask, Node):
        return False
    compared = False
    listed = {id(n) for t in ancestors(mask) if t.op in ("tensor", "as_tensor") for n in ancestors(t.inputs)}
    for node in ancestors(mask, through=lambda n: n.op not in ("batch", "getitem") or n is mask):
        if id(node) in listed and (node.op in PIECES or node.unknown):
            continue  # how the tokens themselves were made, one by one
        if node.op in ORDERED or node.unknown or node.op in ("argument", "call", "buffer", "param", "opaque"):
            return False
        if node.op == "getitem" and isinstance(cut := node.inputs[0], Node) and _fixed(cut):
            return False  # a table that the network holds, cut to the length: ``self.tril[:t, :t] == 0``
        compared = compared or node.op in ("eq", "ne")
    return compared


def _fixed(table: Node) -> bool:
    """True for a mask that was made once or anew, and does not come out of the batch."""
    inner = next((n for n in ancestors(table) if n.op not in (*VIEWS, "eq", "ne", "to", "float")), table)
    return inner.op in ORDERED or inner.op in ("buffer", "param", "argument", "call", "opaque")


PIECES = frozenset(["either", "sort", "linspace"])


def _tensors(node: Node) -> int:
    return sum(isinstance(i, Node) and not (not i.shape.open and not i.shape.dims) for i in node.inputs[:2])
