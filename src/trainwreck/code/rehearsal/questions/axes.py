"""Axes: reductions that run over the batch, over a single element, or over another axis than what they are for."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import RAW, core, trained, users
from trainwreck.code.shapes.domain import Shape

SOFT = frozenset(["softmax", "log_softmax", "softmin", "gumbel_softmax"])
POINTWISE = frozenset(
    """log exp clamp clip dropout neg masked_fill float add sub mul div where nan_to_num pow relu gelu tanh sigmoid
    layer_norm batch_norm silu leaky_relu elu softplus sqrt square abs setitem log1p layernorm prelu
    logsigmoid cumsum cumprod flip""".split()
)
"""What leaves the axes where they are."""
CUTS = frozenset(["chunk", "split", "tensor_split"])
"""What cuts along an axis into several."""


def batch_first(value: Value, depth: int = 0) -> bool:
    """True where the first axis of the value is sure to be that of the samples of a batch."""
    if not isinstance(value, Node) or depth > 60:
        return False
    inputs = value.inputs
    first = inputs[0] if inputs else None
    if value.op == "batch":
        return bool(value.shape.dims) and not value.shape.open
    if value.op in ("gru", "lstm", "rnn"):
        return value.options.get("batch_first") is True and batch_first(first, depth + 1)
    if value.op in ("cat", "concat", "concatenate"):
        return along(value) not in (0, None) and any(batch_first(n, depth + 1) for n in parts(first))
    if value.op in ("part", "getitem", "element") and isinstance(first, Node) and first.op in CUTS:
        return batch_first(first.inputs[0], depth + 1)  # fewer samples are samples
    if value.op == "getitem" and len(inputs) > 1:
        index = inputs[1][0] if isinstance(inputs[1], tuple) and inputs[1] else inputs[1]
        if isinstance(index, Node):
            return len(index.shape.dims) == 1 and not index.shape.open and index.op not in ("arange",)
        whole = isinstance(index, Obj) and index.args[:2] == (None, None)
        return (whole or index is Ellipsis) and batch_first(first, depth + 1)
    if value.op in ("transpose", "swapaxes", "permute", "movedim"):
        order = inputs[1] if len(inputs) > 1 and isinstance(inputs[1], tuple) else inputs[1:]
        kept = order[:1] == (0,) if value.op == "permute" else 0 not in order and -len(value.shape.dims) not in order
        return kept and batch_first(first, depth + 1)
    if value.op in ("view", "reshape"):
        size = inputs[1][0] if len(inputs) > 1 and isinstance(inputs[1], tuple) else (*inputs, None)[1]
        of_batch = isinstance(size, Node) and size.op == "size" and size.inputs[1:2] == (0,)
        return (of_batch or size == -1) and batch_first(first, depth + 1)
    if value.op in ("sum", "mean", "amax", "max", "min", "norm", "squeeze", "logsumexp", "unsqueeze", "argmax", "std"):
        return along(value) not in (0, None) and batch_first(first, depth + 1)
    if value.op in RAW or value.op in POINTWISE or value.op in ("flatten", "embedding", "part", "relu6", "identity"):
        sides = [i for i in inputs[:2] if isinstance(i, Node) and i.op not in ("param", "buffer")]
        sides = [i for i in sides if i.shape.dims or i.op == "getitem"]
        return bool(sides) and any(batch_first(s, depth + 1) for s in sides)
    if value.op in ("clone", "contiguous", "to", "cuda", "detach", "double", "half", "type", "long", "normalize"):
        return batch_first(first, depth + 1)
    if value.op in SOFT or value.op.endswith(("pool1d", "pool2d", "norm")):
        return batch_first(first, depth + 1)
    return False


def stacks(loader: Obj | None) -> bool:
    """True for a loader that puts samples behind each other by itself, whatever they are."""
    return loader is not None and loader.options.get("collate_fn") is None and bool(loader.get("batch_size", 1, 1))


def sized_by(node: Node) -> Node | None:
    """Of a new shape the value by whose length its first axis is asked for (``view(len(x), -1)``), where it was made
    of that value."""
    rest = node.inputs[1:]
    size = rest[0][0] if len(rest) == 1 and isinstance(rest[0], tuple) and rest[0] else (*rest, None)[0]
    whole = isinstance(size, Node) and (size.op == "len" or (size.op == "size" and size.inputs[1:2] == (0,)))
    base = size.inputs[0] if whole and isinstance(size, Node) and size.inputs else None
    return base if isinstance(base, Node) and any(n is base for n in near(node.inputs[0], 60)) else None


def along(node: Node) -> Value:
    """The axis that a reduction, a softmax or a normalisation runs over; None where none is given."""
    for name in ("dim", "axis"):
        if name in node.options:
            return node.options[name]
    if node.owner is not None and node.owner.kind.startswith("torch.nn."):
        return node.owner.get("dim", 0)
    rest = node.inputs[1 : len(node.inputs) - sum(k != "inplace" for k in node.options)]
    place = 1 if node.op in ("norm", "normalize", "cosine_similarity", "pairwise_distance") else 0
    return rest[place] if len(rest) > place else None


def _axis(shape: Shape, dim: Value) -> int | None:
    """The axis counted from the left; None where that can't be told."""
    if not isinstance(dim, int) or isinstance(dim, bool):
        return None
    if dim >= 0:
        return dim
    return len(shape.dims) + dim if not shape.open and len(shape.dims) + dim >= 0 else None


# ---------------------------------------------------------------------- reductions
def wrong_axis(run: Rehearsing) -> Iterator[Answer]:
    for node in trained(run):
        if node.place is None or not node.inputs or not isinstance(node.inputs[0], Node):
            continue
        if node.op in SOFT:
            text = _softmax(run, node)
        elif node.op == "cosine_similarity":
            text = _cosine(node)
        elif node.op in ("mean", "sum", "amax", "max"):
            text = _pooled(run, node)
        elif node.op == "logsumexp":
            text = _over_samples(run, node)
        elif node.op == "normalize":
            text = _scaled_columns(run, node)
        else:
            continue
        if text:
            yield Answer(node.place, text)


def _softmax(run: Rehearsing, node: Node) -> str:
    scores = node.inputs[0]
    shape, dim = scores.shape, along(node)
    if not isinstance(dim, int):
        return ""
    if shape.dim(dim) == 1 and node.op != "log_softmax":
        return "this axis has one element: every weight of this softmax is 1"
    at = _axis(shape, dim)
    if at is None:
        return ""
    count = len(shape.dims)
    wide = not shape.open and count >= 2 and not (count == 2 and shape.dims[1] == 1)
    # how many axes there are isn't known, but the samples lie along the first and the features along the last
    wide = wide or (shape.open and dim == 0 and bool(shape.dims) and shape.dims[-1] != 1)
    raw = RAW | ({"bmm"} if count == 2 else {"bmm", "matmul", "einsum"})
    if wide and _along_samples(run, scores, at) and all(n.op in raw for n in core(_unscaled(scores))):
        return f"the softmax runs over axis {at}, the samples of the batch"
    return _used_otherwise(run, node, at, count if not shape.open else None)


def _along_samples(run: Rehearsing, value: Node, at: int) -> bool:
    from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis

    return sample_axis(run, value) == at or (at == 0 and batch_first(value))


def _unscaled(node: Node) -> Node:
    for _ in range(10):
        if node.op in ("div", "mul", "add", "sub", "masked_fill", "clamp", "where") and node.inputs:
            tensors = [i for i in node.inputs[:2] if isinstance(i, Node) and i.grad]
            if len(tensors) != 1:
                return node
            node = tensors[0]
        else:
            return node
    return node


def _used_otherwise(run: Rehearsing, node: Node, at: int, count: int | None) -> str:
    """Words where what follows takes another axis than the softmax for the classes or the weighted elements."""
    queue = [(node, at)]
    for _ in range(60):
        if not queue:
            return ""
        value, axis = queue.pop(0)
        for user in users(run).get(id(value), ()):
            if user.op == "nll_loss" and user.inputs[0] is value and axis != 1 and (count or 0) >= 2:
                return f"the loss takes the classes from axis 1, and the softmax runs over axis {axis}"
            if user.op == "gather" and user.inputs[0] is value:
                picked = _axis(value.shape, user.options.get("dim", user.inputs[1] if len(user.inputs) > 1 else None))
                if picked is not None and picked != axis:
                    return f"one class is picked along axis {picked}, and the softmax runs over axis {axis}"
            if user.op == "matmul" and user.inputs[0] is value and axis != (count or axis + 1) - 1 and _attention(node):
                return "the weights are normalised over the queries, not over the keys that they are summed over"
            if user.op == "einsum" and (text := _contracted(user, value, axis)):
                return text
            if user.op == "mul" and (text := _weighted(run, user, axis)):
                return text
            if user.op in ("log", "dropout", "clamp", "float", "add", "neg", "to", "masked_fill", "contiguous"):
                queue.append((user, axis))
            if user.op == "unsqueeze" and user.inputs[1:2] == (-1,):
                queue.append((user, axis))
    return ""


def _attention(node: Node) -> bool:
    return any(n.op in ("matmul", "einsum", "bmm", "baddbmm") for n in core(_unscaled(node.inputs[0])))


def _contracted(user: Node, value: Node, axis: int) -> str:
    text = user.inputs[0]
    if not isinstance(text, str) or "->" not in text or "..." in text or len(user.inputs) != 3:
        return ""
    left, _, right = text.replace(" ", "").partition("->")
    operands = left.split(",")
    place = next((n for n, item in enumerate(user.inputs[1:]) if item is value), None)
    if place is None or len(operands) != 2 or axis >= len(operands[place]):
        return ""
    letters = operands[place]
    summed = [c for c in letters if c not in right and c in operands[1 - place]]
    if len(summed) == 1 and letters[axis] != summed[0]:
        return "the weights are normalised over another axis than the one that they are summed over"
    return ""


def _weighted(run: Rehearsing, product: Node, axis: int) -> str:
    """``(weights * values).sum(dim)`` with another axis."""
    for user in users(run).get(id(product), ()):
        if user.op == "sum" and user.inputs and user.inputs[0] is product:
            dim = _axis(product.shape, along(user))
            if dim is not None and dim != axis and dim != 0:
                return f"the weighted sum runs over axis {dim}, and the softmax over axis {axis}"
    return ""


def _cosine(node: Node) -> str:
    """Similarities that are summed over the samples, or over an axis that was only made to compare all with all."""
    one, other = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
    dim = along(node)
    dim = 1 if dim is None else dim
    if not isinstance(one, Node) or not isinstance(other, Node) or one.shape.open or other.shape.open:
        return ""
    at = _axis(one.shape, dim)
    if at is None or len(one.shape.dims) != len(other.shape.dims) or len(one.shape.dims) < 2:
        return ""
    last = len(one.shape.dims) - 1
    if at != last and 1 in (one.shape.dims[at], other.shape.dims[at]) and one.shape.dims[at] != other.shape.dims[at]:
        return (
            f"the similarities are summed over axis {at}, along which one side is only repeated, not over the features"
        )
    features = all(n.op == "linear" for s in (one, other) for n in core(s)) and one.grad != other.grad
    if at == 0 and last == 1 and (features or (batch_first(one) and batch_first(other))):
        return "the similarities are summed over the samples of the batch, one for each feature"
    return ""


def _pooled(run: Rehearsing, node: Node) -> str:
    """The samples of the batch are averaged before the next layer, or summed where the features should be."""
    inner, dim = node.inputs[0], along(node)
    shape = inner.shape
    at = _axis(shape, dim)
    if at is None or shape.open or len(shape.dims) < 2 or not node.grad or not _along_samples(run, inner, at):
        return ""
    if node.options.get("keepdim") is True:
        spread = [u for u in users(run).get(id(node), ()) if u.op in ("expand", "expand_as", "repeat")]
        joined = any(u.op in ("cat", "concat") for s in spread for u in users(run).get(id(s), ()))
        deep = joined and len(shape.dims) >= 3
        return "one value for all samples of the batch is put beside the features of each" if deep else ""
    for user in _next(run, node):
        if user.op in RAW and user.inputs and len(shape.dims) >= 3:
            return "the samples of the batch are pooled into one before the next layer"
        if user.op == "mean" and node.op == "sum" and user.inputs and along(user) is None and len(shape.dims) == 2:
            return "the sum runs over the samples and the mean over the features: it belongs the other way round"
    return ""


def _over_samples(run: Rehearsing, node: Node) -> str:
    """A mixture that is summed over the samples: no table of all against all, whose axes are both the batch."""
    inner = node.inputs[0]
    shape = inner.shape
    if _axis(shape, along(node)) != 0 or shape.open or len(shape.dims) != 2:
        return ""
    if not batch_first(inner) and not _along_samples(run, inner, 0):
        return ""
    products = any(n.op in ("matmul", "mm", "einsum", "cdist", "bmm", "cosine_similarity") for n in near(inner, 60))
    known = isinstance(shape.dims[1], int) and shape.dims[1] != shape.dims[0]
    return "the sum runs over the samples of the batch, not over the parts of each" if known and not products else ""


def _next(run: Rehearsing, node: Node) -> Iterator[Node]:
    for user in users(run).get(id(node), ()):
        yield user
        if user.op in ("relu", "gelu", "dropout", "layer_norm", "neg", "mul", "tanh", "part", "div"):
            yield from users(run).get(id(user), ())


def _scaled_columns(run: Rehearsing, node: Node) -> str:
    """Embeddings that are brought to length one along the samples. Meant where columns are compared afterwards: a
    product over the samples (``z.T @ z``, Barlow Twins)."""
    shape = node.inputs[0].shape if isinstance(node.inputs[0], Node) else None
    if shape is None or shape.open or len(shape.dims) != 2 or _axis(shape, along(node)) != 0:
        return ""
    if not batch_first(node.inputs[0]) or any(over_rows(n) for n in _after(run, node)):
        return ""
    return "each column is brought to length one over the samples of the batch, not each sample by itself"


def over_rows(node: Node) -> bool:
    """True for a product that runs over the samples: ``z.T @ z``."""
    if node.op == "einsum":
        return True
    left = node.inputs[0] if node.inputs else None
    turned = isinstance(left, Node) and left.op in ("t", "T", "mT", "transpose", "permute", "numpy_T")
    return turned and node.op in ("matmul", "mm", "bmm", "dot")


def _after(run: Rehearsing, node: Node) -> list[Node]:
    """What is computed from a value, a few operations on."""
    found, front = [], [node]
    for _ in range(6):
        front = [u for n in front for u in users(run).get(id(n), ())][:40]
        found += front
    return found
