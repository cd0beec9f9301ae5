"""Shapes of the values of a rehearsal: what layers, functions and operators make of the shapes given to them.

The tables are those of ``code.shapes``, asked in the terms of the rehearsal. What is not known is ``ANY``.
The first axis of a batch has no known size, and is not 1.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainwreck.code.calls import Call
from trainwreck.code.rehearsal.combining import OPERATORS, SCALAR, combined, operand, together
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value, candidates
from trainwreck.code.rehearsal.reshaping import (
    HERE,
    counted,
    cut_or_ordered,
    flat_number,
    grid,
    indexed,
    literal,
    normed,
    ruled,
    selected,
    squeezed,
    taken,
    taken_along,
    widened,
)
from trainwreck.code.rehearsal.sequencing import SEQUENCES, sequence_shape
from trainwreck.code.shapes import domain as known
from trainwreck.code.shapes.asked import Asked
from trainwreck.code.shapes.domain import ANY, Shape
from trainwreck.code.shapes.functions import BINARY, KEEPS, computed
from trainwreck.code.shapes.joins import CREATES, created, multiplied, stacked
from trainwreck.code.shapes.layers import Report, applied
from trainwreck.code.shapes.losses import checked
from trainwreck.code.shapes.patterns import matched

NUMBERS = frozenset("size len numel nelement dim item counter index clip_grad_norm_ option lookup".split())
SAME = frozenset(
    """neg invert not buffer data setitem loaded layer_norm batch_norm group_norm rms_norm instance_norm scale threshold
    isnan isfinite isinf logical_not log2 log10 expm1 acos asin arccos arcsin tan sinh cosh atan erfinv lgamma digamma
    masked_scatter scatter scatter_add index_fill index_add add_at cumprod softmin bernoulli fill copy fillna clamp_min
    clamp_max
    gumbel_softmax logit sinc trunc tolist argsort coalesce to_dense to_sparse to_sparse_coo to_sparse_csr""".split()
)
"""Functions of one tensor that keep its shape, beyond those of ``shapes.functions``."""
LOSSES = frozenset(
    """cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss
    huber_loss kl_div gaussian_nll_loss poisson_nll_loss""".split()
)
SIZES = frozenset(["view", "reshape", "expand", "repeat", "tile", *CREATES, "eye", "arange", "linspace", "randperm"])
"""Functions whose arguments are sizes: a value that is computed is a size that is not known."""
NUMPY_TYPES = frozenset("float16 float32 float64 int8 int16 int32 int64 uint8 bool_ single double".split())
"""Types of numpy, called to convert a number or an array."""
NEW = {f"new_{name}": name for name in ("zeros", "ones", "full", "empty")}
"""``x.new_zeros(3)``: as ``zeros(3)``, on the device of ``x``."""
MAKERS = {"tensor", "as_tensor", "array", "asarray", "FloatTensor", "LongTensor", "Tensor", "from_numpy"}
LONE = frozenset(
    f"random.{n}"
    for n in "random randrange randint uniform gauss normalvariate betavariate expovariate triangular".split()
)
"""Draws of a single number."""
GENERATORS = frozenset(["default_rng", "RandomState"])
DRAWS = {
    **dict.fromkeys("normal uniform gamma beta lognormal laplace logistic gumbel vonmises binomial wald".split(), 2),
    **dict.fromkeys("exponential poisson geometric rayleigh weibull pareto power chisquare standard_t".split(), 1),
    **dict.fromkeys("standard_normal standard_cauchy standard_exponential random".split(), 0),
}
"""Numpy's distributions with the number of their parameters: the size comes after them."""
BOTH_ENDS = 3
"""Arguments of ``rng.integers(low, high, size)``."""
TABLES = ("make_regression", "make_classification", "make_moons", "make_blobs", "make_circles", "load_digits")


def shape_of(node: Node, report: Report) -> tuple[Shape, tuple[Shape, ...]]:
    """(the shape of a new value, the shapes of its parts where it is a tuple); what does not fit is reported."""
    found = _found(node, report)
    if isinstance(found, Shape):
        return found, ()
    if isinstance(found, tuple) and found and all(isinstance(f, Shape) for f in found):
        return ANY, found
    return ANY, ()


def _found(node: Node, report: Report) -> Value:
    first = node.inputs[0] if node.inputs else None
    op = node.op
    if op in NUMBERS:
        return SCALAR
    if op == "either":
        return _either(node)
    if op == "part":
        return taken(node.inputs)
    if op == "element":
        return first.shapes[0] if isinstance(first, Node) and first.shapes else _row(first)
    if op in SEQUENCES:
        return sequence_shape(node)
    if op in ("split", "array_split", "permutation") and (found := cut_or_ordered(node, operand(first))) is not None:
        return found
    if op == "split" and node.full:
        rows = operand(first)
        return Shape((None, *rows.dims[1:]), False, rows.by) if rows.dims and not rows.open else ANY
    if node.owner is not None and node.full == node.name and node.full.startswith("torch.nn.") and op not in LOSSES:
        return _layer(node, node.owner, report)
    if op in LOSSES:
        return _loss(node, report)
    if node.full.startswith("builtins."):
        if op in ("min", "max") and len(node.inputs) > 1:
            return together(node.inputs)
        return SCALAR if op in ("float", "int", "len", "bool") else operand(first) if op in ("abs", "round") else ANY
    if op in NUMPY_TYPES and node.full == f"numpy.{op}":
        return operand(first) if isinstance(first, Node) else SCALAR if isinstance(first, int | float) else ANY
    if op == "getitem":
        if isinstance(first, Node) and first.shapes and isinstance(at := (*node.inputs, None)[1], int):
            return first.shapes[at] if -len(first.shapes) <= at < len(first.shapes) else ANY
        return indexed(operand(first), node.inputs[1]) if len(node.inputs) > 1 else ANY
    lone = node.owner is not None and node.owner.kind == "random.Random" and f"random.{op}" in LONE
    if lone or node.full in LONE or node.full in ("torch.dot", "torch.vdot"):
        return SCALAR
    if node.full.startswith("math."):
        return together(node.inputs)
    if op in OPERATORS:
        lists = any(isinstance(i, Node) and i.op == "tolist" for i in node.inputs)
        return ANY if lists else combined(node, report)  # lists are put behind each other
    if op == "attribute":
        return SCALAR if node.name == "ndim" else ANY
    if op in SAME:
        return operand(first)
    return _function(node, first, report)


def _either(node: Node) -> Value:
    found = [operand(c) for c in candidates(node) if c is not None]
    result = found[0] if found else ANY
    for other in found[1:]:
        result = known.joined(result, other)
    return result


def _row(value: Value) -> Shape:
    shape = operand(value)
    return Shape(shape.dims[1:], False, shape.by) if shape.dims and not shape.open else ANY


def _call(node: Node) -> Call:
    place = node.place
    return Call(place[0], place[1]) if place is not None and isinstance(place[0], ast.Call) else HERE


def _made(owner: Obj) -> Call | None:
    """The call that made a layer."""
    place = owner.place
    return Call(place[0], place[1]) if place is not None and isinstance(place[0], ast.Call) else None


def _given(value: Value, *, sizes: bool = False) -> Value:
    """A value of the rehearsal in the terms of the tables."""
    match value:
        case Node():
            return known.UNKNOWN if sizes or flat_number(value) else value.shape
        case tuple():
            return tuple(_given(v, sizes=sizes) for v in value)
        case Items():
            return known.UNKNOWN if value.more else known.Items([_given(v, sizes=sizes) for v in value.items])
        case None | bool() | int() | float() | str():
            return value
        case Obj() if value.kind == "torch.Size":
            return known.UNKNOWN
    return known.UNKNOWN


def _layer(node: Node, owner: Obj, report: Report) -> Value:
    """The output of a layer of torch."""
    call = _made(owner) or _call(node)
    args = tuple(_given(a, sizes=True) for a in owner.args)
    layer = known.Layer(
        owner.name, call, args, {k: _given(v, sizes=True) for k, v in owner.options.items() if isinstance(k, str)}
    )
    for name in ("encoder_layer", "decoder_layer"):
        if isinstance(inner := owner.get(name, 0), Obj) and inner.name.startswith("Transformer"):
            options = {k: _given(v, sizes=True) for k, v in inner.options.items()}
            held = known.Layer(inner.name, call, tuple(_given(a, sizes=True) for a in inner.args), options)
            layer = known.Layer(owner.name, call, (held, *args[1:]), {**layer.options, name: held})
    if owner.cls is not None:
        return ANY
    given = [_given(v) for v in node.inputs if not (isinstance(v, Node) and v.op == "param")]
    if owner.name == "MultiheadAttention":
        return given[0] if given else ANY
    found = applied(layer, given, report)
    return found[0] if isinstance(found, tuple) and owner.name in ("LSTM", "GRU", "RNN") else found


def _loss(node: Node, report: Report) -> Value:
    given = [v for v in node.inputs[:2] if isinstance(v, Node)]
    if len(given) == len(node.inputs[:2]):
        checked(node.op, [v.shape for v in given], {}, _call(node), report)
    reduction = node.options.get("reduction", "mean")
    if reduction == "none" or node.options.get("reduce") is False:
        if node.op in ("cross_entropy", "nll_loss"):
            return operand(node.inputs[1]) if len(node.inputs) > 1 else ANY
        return together(node.inputs[:2])
    return SCALAR if isinstance(reduction, str) else ANY


def _function(node: Node, first: Value, report: Report) -> Value:
    op = node.op
    count = len(node.inputs) - sum(1 for k in node.options if k != "inplace")
    args = node.inputs[1 : max(count, 1)]
    if op in TABLES:
        return (Shape((None, None)), Shape((None,)))
    if op in MAKERS:
        return literal(first)
    if op in ("cat", "concat", "concatenate", "stack"):
        return _joined(node, first, args, report)
    if op in ("sparse_coo_tensor", "sparse_csr_tensor"):
        size = node.options.get("size", args[-1] if len(args) > (1 if op == "sparse_coo_tensor" else 2) else None)
        return _sized(node, size) if isinstance(size, tuple | Items) else ANY
    if op == "einsum":
        return _einsum(node.inputs)
    if op == "broadcast_to" or node.full == "numpy.select":
        return widened(node) if op == "broadcast_to" else selected(node)
    made = isinstance(first, Node) and first.op in GENERATORS
    numpy = made or node.full.startswith("numpy.random")
    whole = numpy and (op == "integers" or (op == "randint" and (made or node.full == "numpy.random.randint")))
    if whole and len(node.inputs) < BOTH_ENDS + made and "size" not in node.options:
        known_ends = (isinstance(i, int) or (isinstance(i, Node) and i.shape == SCALAR) for i in node.inputs[made:])
        return SCALAR if all(known_ends) else ANY
    if op in DRAWS and numpy and len(node.inputs) <= made + DRAWS[op] and "size" not in node.options:
        return _drawn(node)
    if op == "choice" and (made or node.full.startswith("numpy.random")):
        return _chosen(node)
    if op in NEW and isinstance(first, Node):
        given = [_given(v, sizes=True) for v in args]
        return created(NEW[op], given, {k: _given(v, sizes=True) for k, v in node.options.items()}, _call(node), False)
    if op in ("meshgrid", "mgrid", "ogrid", "indices"):
        return grid(node) if op == "meshgrid" else ruled(node)
    if op == "arange" and node.full and all(not isinstance(v, Node) for v in node.inputs):
        return Shape(counted(node), False, _call(node))
    if op in CREATES or op in ("eye", "arange", "linspace", "randperm"):
        generator = isinstance(first, Obj) or (isinstance(first, Node) and first.op in GENERATORS)
        if isinstance(first, Node) and not node.full and not generator:
            return first.shape  # in place: x.uniform_()
        sized = node.inputs[1 if generator else 0 : len(node.inputs) - len(node.options)]
        options = {k: _given(v, sizes=True) for k, v in node.options.items()}
        numpy = generator or node.full.startswith(("numpy", "np", "jax"))
        return created(op, [_given(v, sizes=True) for v in sized], options, _call(node), numpy)
    if op in DRAWS and ((isinstance(first, Node) and first.op in GENERATORS) or node.full.startswith("numpy.random")):
        return _drawn(node)
    if not isinstance(first, Node):
        number = isinstance(first, int | float) and op in KEEPS
        return together(node.inputs[:2]) if op in BINARY else SCALAR if number else ANY
    shape = first.shape
    if op in ("expand_as", "view_as", "reshape_as", "type_as"):
        return operand(args[0]) if args and op != "type_as" else shape
    if op == "gather":
        return operand(node.options.get("index", args[1] if len(args) > 1 else None))
    if op in ("take_along_dim", "take_along_axis"):
        return taken_along(node, args)
    if op == "choose" and args:  # one of several numbers for each element
        listed = args[0].items if isinstance(args[0], Items) else args[0]
        numbers = isinstance(listed, list | tuple) and all(isinstance(i, int | float) for i in listed)
        return shape if numbers else ANY
    if op == "where":
        return together(node.inputs[:3])
    if op in ("linear", "embedding") and args:
        weight = operand(args[0])
        if op == "linear":
            return shape.replaced(-1, weight.dim(0)) if shape.dims else Shape((weight.dim(0),), True)
        return Shape((*shape.dims, weight.dim(-1)), shape.open)
    if op in ("chunk", "split", "unbind", "tensor_split"):
        return _pieces(node, shape, args)
    if op in ("norm", "vector_norm", "cosine_similarity", "pairwise_distance", "diagonal", "outer", "cdist"):
        return normed(node, shape, args)
    if op in ("squeeze", "ravel") and not args and not node.options:
        return squeezed(shape) if op == "squeeze" else Shape((shape.total,))
    if op == "sort":
        return (shape, shape)
    if op == "kthvalue":
        kept = shape.replaced(-1, None) if len(args) + len(node.options) < 2 else ANY
        return (kept, kept)
    if op == "scaled_dot_product_attention" and len(node.inputs) > 2:
        return shape.replaced(-1, operand(node.inputs[2]).dim(-1)) if shape.dims else ANY
    sizes = op in SIZES
    options = {k: _given(v, sizes=sizes) for k, v in node.options.items() if k != "inplace"}
    given = [_given(a, sizes=sizes) for a in args]
    if op == "matmul":
        return multiplied(Asked(op, shape, given, options, _call(node), report), operand(args[0] if args else None))
    if op in ("rearrange", "reduce", "repeat") and given and isinstance(given[0], str):
        return matched(given[0], shape, options)[0]
    if op in BINARY and args and not isinstance(args[0], Node):
        return together((first, args[0]))
    found = computed(Asked(op, shape, given, options, _call(node), report))
    return shape if found is known.UNKNOWN and op in KEEPS else found


def _drawn(node: Node) -> Shape:
    """What a distribution of numpy gives: of its size, or of its parameters where there is none."""
    drawn = node.inputs[1 if isinstance(node.inputs[0] if node.inputs else None, Node) and _made_by(node) else 0 :]
    given = drawn[: len(drawn) - len(node.options)]
    size = node.options.get("size", given[DRAWS[node.op]] if len(given) > DRAWS[node.op] else None)
    if size is not None:
        return _sized(node, size)
    return together([*given, *(v for k, v in node.options.items() if k in PARAMETERS)])


def _sized(node: Node, size: Value) -> Shape:
    sizes = list(size) if isinstance(size, tuple) else size.items if isinstance(size, Items) else [size]
    if isinstance(size, Node) and not flat_number(size):
        return ANY
    return Shape(tuple(known.size(_given(s, sizes=True)) for s in sizes), False, _call(node))


def _chosen(node: Node) -> Shape:
    """Numbers that are drawn from a list, an axis or a count."""
    drawn = node.inputs[1 if _made_by(node) else 0 :]
    given = drawn[: len(drawn) - len(node.options)]
    listed = node.options.get("a", given[0] if given else None)
    size = node.options.get("size", given[1] if len(given) > 1 else None)
    items = listed.items if isinstance(listed, Items) else listed if isinstance(listed, tuple) else None
    numbers = isinstance(listed, int) or (items is not None and all(isinstance(i, int | float | str) for i in items))
    line = isinstance(listed, Node) and (flat_number(listed) or (not listed.shape.open and len(listed.shape.dims) == 1))
    return _sized(node, size) if size is not None and (numbers or line) else ANY


PARAMETERS = frozenset("loc scale low high shape a b lam p n mean sigma mu kappa df".split())


def _made_by(node: Node) -> bool:
    first = node.inputs[0] if node.inputs else None
    return isinstance(first, Node) and first.op in GENERATORS


def _joined(node: Node, first: Value, args: Sequence[Value], report: Report) -> Value:
    along = node.options.get("dim", node.options.get("axis", args[0] if args else 0))
    if not isinstance(first, tuple | Items) or not isinstance(along, int):
        return ANY
    items = list(first) if isinstance(first, tuple) else first.items
    shapes = [operand(i) for i in items]
    asked = Asked(node.op, ANY, (), {}, _call(node), report)
    if isinstance(first, Items) and first.more:
        if not shapes or shapes[0].open:
            return ANY
        one = shapes[0]
        alike = first.length is not None and all(s.dims == one.dims and not s.open for s in shapes)
        count = first.length if alike else None
        if node.op != "stack":
            size = one.dim(along)
            return one.replaced(along, None if count is None or size is None else count * size)
        at = along if along >= 0 else len(one.dims) + along + 1
        return Shape((*one.dims[:at], count, *one.dims[at:]), False, one.by)
    return stacked(shapes, along, asked, new=node.op == "stack")


def _einsum(inputs: Sequence[Value]) -> Shape:
    """The axes of the output take the sizes that their letters have among the operands."""
    text = inputs[0] if inputs else None
    if not isinstance(text, str) or "->" not in text or "..." in text:
        return ANY
    left, _, right = text.replace(" ", "").partition("->")
    sizes: dict[str, int | None] = {}
    for letters, value in zip(left.split(","), inputs[1:], strict=False):
        shape = operand(value)
        for place, letter in enumerate(letters):
            dim = shape.dim(place) if not shape.open else shape.dim(place - len(letters))
            if sizes.get(letter) is None:
                sizes[letter] = dim
    return Shape(tuple(sizes.get(letter) for letter in right))


def _pieces(node: Node, shape: Shape, args: Sequence[Value]) -> Value:
    """The parts of ``chunk``, ``split`` and ``unbind``."""
    names = {"chunk": "chunks", "split": "split_size", "unbind": "dim", "tensor_split": "indices"}
    count = node.options.get(names[node.op], args[0] if args else 0 if node.op == "unbind" else None)
    along = node.options.get("dim", args[1] if len(args) > 1 else 0)
    if node.op == "unbind":
        along = count
    at = shape.axis(along) if isinstance(along, int) else None
    if at is None or not isinstance(along, int):
        return ANY
    whole = shape.dims[at]
    if node.op == "unbind":
        rest = Shape((*shape.dims[:at], *shape.dims[at + 1 :]), shape.open, shape.by)
        return (rest,) * min(whole or 2, 8)
    if isinstance(count, tuple | Items):
        listed = list(count) if isinstance(count, tuple) else count.items
        return tuple(shape.replaced(along, known.size(c)) for c in listed)
    if node.op == "split":
        pieces = whole // count if isinstance(count, int) and count and whole and whole % count == 0 else None
        part = count if pieces and isinstance(count, int) else None
        return (shape.replaced(along, part),) * min(pieces or 2, 16)
    part = whole // count if isinstance(count, int) and count and whole and whole % count == 0 else None
    return (shape.replaced(along, part),) * (count if isinstance(count, int) and 0 < count <= 16 else 2)
