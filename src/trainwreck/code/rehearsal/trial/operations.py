"""What operations of torch and numpy make of arrays: the table of the bench."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainwreck.code.rehearsal.domain import Items, Node
from trainwreck.code.rehearsal.trial.bench import TABLE, Array, Bench, Unknown, argument, is_bool, operation, positional


def _named(name: str) -> Callable[..., Array]:
    """The function of numpy of this name."""

    def compute(np: Any, *arrays: Array) -> Array:
        return getattr(np, name)(*arrays)

    return compute


def _elementwise() -> None:
    def unary(name: str, compute: Callable[[Any, Array], Array]) -> None:
        def run(bench: Bench, node: Node) -> Array:
            return compute(bench.np, bench.work(node.inputs[0]))

        TABLE[name] = run

    def binary(name: str, compute: Callable[[Any, Array, Array], Array]) -> None:
        def run(bench: Bench, node: Node) -> Array:
            given = positional(node)
            one = bench.work(given[0])
            other = bench.work(given[1] if len(given) > 1 else node.inputs[1])
            if name in ("add", "sub") and "alpha" in node.options:
                other = other * bench.number(node.options["alpha"])
            return compute(bench.np, one, other)

        TABLE[name] = run

    for name in "exp log sqrt tanh sin cos tan floor ceil sign square log1p expm1".split():
        unary(name, _named(name))
    unary("round", lambda np, a: np.round(a))
    unary("trunc", lambda np, a: np.trunc(a))
    unary("abs", lambda np, a: np.abs(a))
    unary("absolute", lambda np, a: np.abs(a))
    unary("log2", lambda np, a: np.log2(a))
    unary("rsqrt", lambda np, a: 1 / np.sqrt(a))
    unary("reciprocal", lambda np, a: 1 / a)
    unary("neg", lambda np, a: -_real(np, a))
    unary("negative", lambda np, a: -_real(np, a))
    unary("sigmoid", lambda np, a: 1 / (1 + np.exp(-a)))
    unary("expit", lambda np, a: 1 / (1 + np.exp(-a)))
    unary("logsigmoid", lambda np, a: -np.logaddexp(0, -a))
    unary("softplus", lambda np, a: np.logaddexp(0, a))
    unary("relu", lambda np, a: np.maximum(a, 0))
    unary("relu6", lambda np, a: np.clip(a, 0, 6))
    unary("silu", lambda np, a: a / (1 + np.exp(-a)))
    unary("erf", lambda np, a: np.vectorize(__import__("math").erf, otypes=[float])(a))
    unary("hardtanh", lambda np, a: np.clip(a, -1, 1))
    unary("isinf", lambda np, a: np.isinf(a))
    unary("isnan", lambda np, a: np.isnan(a))
    unary("isfinite", lambda np, a: np.isfinite(a))
    unary("bool", lambda np, a: a.astype(bool))
    unary("atan", lambda np, a: np.arctan(a))
    unary("atanh", lambda np, a: np.arctanh(a))
    unary("arctanh", lambda np, a: np.arctanh(a))
    for name in ("invert", "not", "logical_not", "bitwise_not"):
        unary(name, lambda np, a: ~a.astype(bool))
    binary("add", lambda np, a, b: a | b if a.dtype == bool and b.dtype == bool else a + b)
    binary("sub", lambda np, a, b: _real(np, a) - _real(np, b))
    binary("subtract", lambda np, a, b: _real(np, a) - _real(np, b))
    binary("mul", lambda np, a, b: a * b)
    binary("multiply", lambda np, a, b: a * b)
    binary("div", lambda np, a, b: a / b)
    binary("true_divide", lambda np, a, b: a / b)
    binary("divide", lambda np, a, b: a / b)
    binary("floor_divide", lambda np, a, b: a // b)
    binary("mod", lambda np, a, b: np.mod(a, b))
    binary("remainder", lambda np, a, b: np.mod(a, b))
    binary("pow", lambda np, a, b: np.power(a.astype(float), b))
    binary("maximum", lambda np, a, b: np.maximum(a, b))
    binary("minimum", lambda np, a, b: np.minimum(a, b))
    binary("logaddexp", lambda np, a, b: np.logaddexp(a, b))
    for name, function in (("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"),
                           ("gt", "greater"), ("ge", "greater_equal")):  # fmt: skip
        binary(name, _named(function))
    for name in ("and", "logical_and", "bitwise_and"):
        binary(name, lambda np, a, b: a & b if a.dtype == b.dtype == bool else a.astype(bool) & b.astype(bool))
    for name in ("or", "logical_or", "bitwise_or"):
        binary(name, lambda np, a, b: a.astype(bool) | b.astype(bool))
    for name in ("xor", "logical_xor", "bitwise_xor"):
        binary(name, lambda np, a, b: a.astype(bool) ^ b.astype(bool))
    for name in ("matmul", "mm", "bmm", "dot", "mv", "spmm", "smm"):
        binary(name, lambda np, a, b: a @ b)


def _real(np: Any, array: Array) -> Array:
    return array.astype(float) if array.dtype == bool else array


_elementwise()


@operation("gelu")
def _gelu(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    return 0.5 * a * (1 + bench.np.tanh(0.7978845608 * (a + 0.044715 * a**3)))


@operation("leaky_relu")
def _leaky(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    return bench.np.where(a > 0, a, 0.01 * a)


@operation("elu")
def _elu(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    return bench.np.where(a > 0, a, bench.np.expm1(bench.np.minimum(a, 0)))


@operation("clamp", "clip", "clamp_min", "clamp_max")
def _clamp(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    low = argument(node, "min", 1) if node.op != "clamp_max" else None
    high = argument(node, "max", 2) if node.op != "clamp_max" else argument(node, "max", 1)
    low = node.options.get("a_min", low)
    high = node.options.get("a_max", high)
    if low is not None:
        a = bench.np.maximum(a, bench.work(low))
    return bench.np.minimum(a, bench.work(high)) if high is not None else a


# ---------------------------------------------------------------------- reductions
@operation("sum", "mean", "amax", "amin", "prod", "any", "all", "std", "var", "logsumexp", "norm", "vector_norm")
def _reduced(bench: Bench, node: Node) -> Array:
    np = bench.np
    a = _of(bench, node)
    first = 2 if node.op in ("norm",) and not node.full.startswith("numpy") else 1
    axis = bench.axis(node.options.get("dim", node.options.get("axis", argument(node, "dim", first))))
    keep = argument(node, "keepdim", first + 1, node.options.get("keepdims", False)) is True
    if node.op in ("norm", "vector_norm"):
        order = argument(node, "p", 1, node.options.get("ord", 2)) if node.op == "norm" else node.options.get("ord", 2)
        if order == 1:
            return np.abs(a).sum(axis=axis, keepdims=keep)
        if order not in (2, 2.0, None, "fro"):
            raise Unknown
        return np.sqrt((a * a).sum(axis=axis, keepdims=keep))
    if node.op == "logsumexp":
        top = a.max(axis=axis, keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        found = np.log(np.exp(a - top).sum(axis=axis, keepdims=True)) + top
        return found if keep else found.squeeze(axis)
    if node.op in ("std", "var"):
        plain = node.full.startswith("numpy") or node.options.get("unbiased") is False
        ddof = 0 if plain or node.options.get("correction") == 0 else 1
        return getattr(np, node.op)(a, axis=axis, keepdims=keep, ddof=ddof)
    name = {"amax": "max", "amin": "min"}.get(node.op, node.op)
    return getattr(np, name)(a, axis=axis, keepdims=keep)


def _of(bench: Bench, node: Node) -> Array:
    given = positional(node)
    if node.full == "builtins.sum" and given and isinstance(given[0], Items | tuple):
        total: Any = 0
        items = given[0].items if isinstance(given[0], Items) else given[0]
        if isinstance(given[0], Items) and given[0].more:
            raise Unknown
        for item in items:
            total = total + bench.work(item)
        return bench.np.asarray(total)[None]
    return bench.work(given[0])


@operation("max", "min")
def _extreme(bench: Bench, node: Node) -> Array:
    np = bench.np
    given = positional(node)
    a = bench.work(given[0])
    if len(given) > 1 and not isinstance(given[1], int):
        return (np.maximum if node.op == "max" else np.minimum)(a, bench.work(given[1]))
    if node.full.startswith("builtins.") and len(given) > 1:
        return (np.maximum if node.op == "max" else np.minimum)(a, bench.work(given[1]))
    axis = bench.axis(node.options.get("dim", node.options.get("axis", argument(node, "dim", 1))))
    keep = argument(node, "keepdim", 2, node.options.get("keepdims", False)) is True
    return getattr(np, node.op)(a, axis=axis, keepdims=keep)


@operation("argmax", "argmin")
def _place(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    axis = bench.axis(node.options.get("dim", node.options.get("axis", argument(node, "dim", 1))))
    found = getattr(bench.np, node.op)(a, axis=axis)
    keep = argument(node, "keepdim", 2, False) is True
    return bench.np.expand_dims(found, axis) if keep else bench.np.asarray(found)


UNPACKED = frozenset(
    """T t transpose permute getitem stack float numpy cpu array tensor from_numpy add sub mul div randint integers rand
    randn random cat concatenate vstack clone long to contiguous reshape view""".split()
)
"""Arrays that are taken apart along their first axis: ``x, y = points.T``."""


@operation("part")
def _part(bench: Bench, node: Node) -> Array:
    """A part of a tuple: values and places of an extreme, or a chunk."""
    whole = node.inputs[0]
    number = node.inputs[1] if len(node.inputs) > 1 else 0
    if not isinstance(whole, Node) or not isinstance(number, int):
        raise Unknown
    if whole.op in ("max", "min"):
        if number == 0:
            return bench.work(whole)
        axis = bench.axis(whole.options.get("dim", argument(whole, "dim", 1)))
        found = getattr(bench.np, f"arg{whole.op}")(bench.work(whole.inputs[0]), axis=axis)
        return bench.np.expand_dims(found, axis) if argument(whole, "keepdim", 2, False) is True else found
    if whole.op in ("cummax", "cummin") and number == 0:
        axis = bench.axis(whole.options.get("dim", argument(whole, "dim", 1)))
        ufunc = bench.np.maximum if whole.op == "cummax" else bench.np.minimum
        return ufunc.accumulate(bench.work(whole.inputs[0]), axis=axis)
    if whole.op in ("chunk", "split", "unbind", "tensor_split"):
        return _pieces(bench, whole)[number]
    if whole.op in UNPACKED and not whole.shapes:
        return bench.work(whole)[number]
    raise Unknown


def _pieces(bench: Bench, node: Node) -> list[Array]:
    a = bench.work(node.inputs[0])
    np = bench.np
    if node.op == "unbind":
        return list(np.moveaxis(a, bench.axis(argument(node, "dim", 1, 0)), 0))
    axis = bench.axis(argument(node, "dim", 2, 0))
    size = argument(node, "chunks", 1) if node.op != "split" else argument(node, "split_size_or_sections", 1)
    if isinstance(size, tuple | Items):
        ends = np.cumsum(bench.sizes((size,)))[:-1]
        return list(np.split(a, ends, axis=axis))
    number = bench.whole(size)
    step = number if node.op == "split" else -(-a.shape[axis] // number)
    return list(np.split(a, range(step, a.shape[axis], step), axis=axis))


@operation("element")
def _element(bench: Bench, node: Node) -> Array:
    """One of what a tuple is unpacked into."""
    whole = node.inputs[0]
    if isinstance(whole, Node) and whole.op in ("chunk", "split", "unbind") and len(node.inputs) > 1:
        return _pieces(bench, whole)[bench.whole(node.inputs[1])]
    raise Unknown


@operation("softmax", "log_softmax", "softmin")
def _softmax(bench: Bench, node: Node) -> Array:
    np = bench.np
    a = bench.work(node.inputs[0])
    axis = argument(node, "dim", 1, node.options.get("axis"))
    if axis is None:
        raise Unknown
    along = bench.axis(axis)
    a = -a if node.op == "softmin" else a
    a = a - a.max(axis=along, keepdims=True)
    total = np.exp(a).sum(axis=along, keepdims=True)
    return a - np.log(total) if node.op == "log_softmax" else np.exp(a) / total


@operation("normalize")
def _normalize(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    axis = bench.axis(argument(node, "dim", 2, 1))
    return a / bench.np.maximum(bench.np.sqrt((a * a).sum(axis=axis, keepdims=True)), 1e-12)


@operation("cumsum", "cumprod")
def _running(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    axis = bench.axis(node.options.get("dim", node.options.get("axis", argument(node, "dim", 1, 0))))
    return getattr(bench.np, node.op)(a, axis=axis)


# ---------------------------------------------------------------------- making
@operation("ones", "zeros", "empty", "full", "new_ones", "new_zeros", "new_full")
def _filled(bench: Bench, node: Node) -> Array:
    np = bench.np
    given = positional(node)
    given = given[1:] if node.op.startswith("new_") else given
    fill: Any = 1.0 if "ones" in node.op else 0.0
    if node.op.endswith("full"):
        value = node.options.get("fill_value", given[1] if len(given) > 1 else None)
        fill = bench.work(value)
        given = given[:1]
    if "size" in node.options:
        given = (node.options["size"],)
    shape = bench.sizes(given)
    if np.prod(shape) > 400_000:
        raise Unknown
    made = np.full(shape, fill)
    return made.astype(bool) if is_bool(node.options.get("dtype")) else made


@operation("ones_like", "zeros_like", "full_like", "empty_like")
def _like(bench: Bench, node: Node) -> Array:
    np = bench.np
    a = bench.work(node.inputs[0])
    if node.op == "full_like":
        return np.full(a.shape, bench.work(argument(node, "fill_value", 1)))
    made = np.full(a.shape, 1.0 if node.op == "ones_like" else 0.0)
    dtype = node.options.get("dtype")
    keeps = a.dtype == bool and dtype is None
    return made.astype(bool) if is_bool(dtype) or keeps else made


@operation("eye", "arange", "tri", "linspace")
def _counted(bench: Bench, node: Node) -> Array:
    given = [bench.number(v) for v in positional(node)]
    np = bench.np
    if node.op == "linspace":
        return np.linspace(given[0], given[1], int(bench.number(argument(node, "steps", 2, 50))))
    made = getattr(np, node.op)(*(int(n) if n == int(n) else n for n in given))
    return made.astype(bool) if is_bool(node.options.get("dtype")) else made


@operation("tensor", "array", "asarray", "scalar_tensor", "float_")
def _written(bench: Bench, node: Node) -> Array:
    return bench.work(positional(node)[0])


# ---------------------------------------------------------------------- picking and shaping
@operation("getitem")
def _item(bench: Bench, node: Node) -> Array:
    base, index = node.inputs[0], node.inputs[1]
    if isinstance(base, Node) and base.op in ("max", "min") and base.shapes and isinstance(index, int):
        return _part(bench, node)
    if isinstance(base, Node) and base.op in ("chunk", "split", "unbind") and isinstance(index, int):
        return _pieces(bench, base)[index]
    if isinstance(base, Node) and base.op == "attribute" and base.name == "shape" and isinstance(index, int):
        return bench.np.asarray(bench.work(base.inputs[0]).shape[index])
    return bench.np.asarray(bench.work(base)[bench.index(index)])


@operation("setitem")
def _stored(bench: Bench, node: Node) -> Array:
    base, value, index = node.inputs[:3]
    made = bench.np.array(bench.work(base))
    new = bench.work(value)
    if made.dtype != bool:
        made = made.astype(float)
    made[bench.index(index)] = new
    return made


@operation("attribute")
def _attribute(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    if node.name == "shape":
        return bench.np.asarray(a.shape)
    if node.name == "ndim":
        return bench.np.asarray(a.ndim)
    raise Unknown


@operation("size")
def _size(bench: Bench, node: Node) -> Array:
    a = bench.work(node.inputs[0])
    at = argument(node, "dim", 1)
    return bench.np.asarray(a.shape if at is None else a.shape[bench.whole(at)])


@operation("len")
def _length(bench: Bench, node: Node) -> Array:
    return bench.np.asarray(len(bench.work(node.inputs[0])))


@operation("numel", "nelement")
def _numel(bench: Bench, node: Node) -> Array:
    return bench.np.asarray(bench.work(node.inputs[0]).size)


@operation("item", "tolist")
def _as_number(bench: Bench, node: Node) -> Array:
    if len(node.inputs) != 1:
        raise Unknown
    return bench.work(node.inputs[0])
