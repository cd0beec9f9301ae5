"""What functions of torch and numpy, and methods of tensors, make of a shape."""

from __future__ import annotations

from trainwreck.code.shapes.asked import Asked
from trainwreck.code.shapes.domain import (
    ANY,
    MANY,
    UNKNOWN,
    Dim,
    Items,
    Shape,
    Value,
    broadcast,
    product,
    size,
    uneven,
)
from trainwreck.code.shapes.joins import multiplied
from trainwreck.code.shapes.layers import flattened, pooled, upsampled

KEEPS = frozenset(
    [
        "relu",
        "relu_",
        "gelu",
        "silu",
        "elu",
        "selu",
        "celu",
        "mish",
        "tanh",
        "tanh_",
        "sigmoid",
        "sigmoid_",
        "softmax",
        "log_softmax",
        "softplus",
        "hardtanh",
        "hardswish",
        "relu6",
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "leaky_relu",
        "clone",
        "contiguous",
        "float",
        "half",
        "double",
        "bfloat16",
        "long",
        "int",
        "bool",
        "to",
        "cuda",
        "cpu",
        "type",
        "type_as",
        "normalize",
        "exp",
        "log",
        "log1p",
        "sqrt",
        "rsqrt",
        "abs",
        "sin",
        "cos",
        "clamp",
        "clip",
        "detach",
        "requires_grad_",
        "cumsum",
        "sign",
        "neg",
        "pow",
        "square",
        "round",
        "floor",
        "ceil",
        "nan_to_num",
        "masked_fill",
        "masked_fill_",
        "fill_diagonal",
        "zero_",
        "fill_",
        "logsigmoid",
        "sort_",
        "flip",
        "flipud",
        "fliplr",
        "roll",
        "triu",
        "tril",
        "astype",
        "copy",
        "numpy",
        "add_",
        "mul_",
        "sub_",
        "div_",
        "clamp_",
        "erf",
        "softsign",
        "zeros_like",
        "ones_like",
        "rand_like",
        "randn_like",
        "empty_like",
        "full_like",
        "from_numpy",
        "as_tensor",
        "tensor",
        "asarray",
        "array",
        "float_power",
        "exp_",
        "log_",
        "retain_grad",
        "pin_memory",
        "requires_grad",
        "ascontiguousarray",
        "real",
        "imag",
        "hardsigmoid",
    ]
)
"""Functions and methods that change no axis."""
BINARY = frozenset(
    """add sub mul div maximum minimum where atan2 arctan2 hypot copysign nextafter fmod remainder lerp""".split()
)
REDUCES = frozenset(
    [
        "mean",
        "sum",
        "max",
        "min",
        "std",
        "var",
        "prod",
        "amax",
        "amin",
        "argmax",
        "argmin",
        "norm",
        "any",
        "all",
        "logsumexp",
        "median",
        "nanmean",
        "nanmedian",
        "nanstd",
        "nanvar",
        "nansum",
        "nanmin",
        "nanmax",
    ]
)


def computed(asked: Asked) -> Value:
    """What the function gives; ``UNKNOWN`` for one that is not known here."""
    name, shape = asked.name, asked.shape
    if name in KEEPS:
        return shape
    if name in BINARY:
        other = asked.args[0] if asked.args else UNKNOWN
        if isinstance(other, int | float):
            return shape
        return _elementwise(asked, other) if isinstance(other, Shape) else ANY
    if name in ("view", "reshape"):
        return _reshaped(asked)
    if name == "flatten":
        return flattened(shape, asked.get("start_dim", 0, 0), asked.get("end_dim", 1, -1))
    if name in ("permute", "transpose", "swapaxes", "swapdims", "t", "mT", "movedim"):
        return _reordered(asked)
    if name in ("unsqueeze", "squeeze", "expand_dims"):
        return _squeezed(asked)
    if name == "rot90":
        return _turned(asked)
    if name in REDUCES:
        return _reduced(asked)
    if name in ("matmul", "mm", "bmm"):
        other = asked.args[0] if asked.args else UNKNOWN
        return multiplied(asked, other) if isinstance(other, Shape) else ANY
    if name in ("repeat", "tile", "expand", "repeat_interleave", "chunk", "split", "unbind", "topk", "sort"):
        return _various(asked)
    if name == "one_hot":
        return Shape((*shape.dims, size(asked.get("num_classes", 0))), shape.open, asked.call)
    return _spatial(asked)


def _elementwise(asked: Asked, other: Shape) -> Shape:
    result, wrong = broadcast(asked.shape, other)
    if wrong is not None:
        asked.clash(
            "divide" if uneven(asked.shape, other) else "sum",
            f"{asked.shape} and {other} can't be combined: {wrong[0]} against {wrong[1]}",
        )
    return result


def _sizes(asked: Asked, name: str = "size") -> list[Value] | None:
    """The sizes given one by one, or as one tuple."""
    given = list(asked.args) or [asked.options[n] for n in (name, "shape") if n in asked.options]
    if len(given) == 1 and isinstance(given[0], tuple | Items):
        given = list(given[0].items if isinstance(given[0], Items) else given[0])
    if MANY in given or (len(given) == 1 and size(given[0]) is None):
        return None  # one that is unknown may be a tuple
    return given or None


def _reshaped(asked: Asked) -> Value:
    sizes = _sizes(asked)
    if sizes is None or any(isinstance(s, Shape) for s in sizes):
        return ANY
    wanted: list[Dim] = [size(s) for s in sizes]
    shape = asked.shape
    if wanted.count(-1) > 1:
        return ANY
    free = wanted.index(-1) if -1 in wanted else None
    rest = product([w for w in wanted if w != -1])
    total = shape.total
    if total is not None and rest is not None:
        if (free is None and rest != total) or (free is not None and (not rest or total % rest)):
            shown = ", ".join(str(w) for w in wanted)
            asked.clash("reshape", f"{shape} has {total} values, which do not fit ({shown})")
            return ANY
        if free is not None:
            wanted[free] = total // rest
    elif free is not None:
        _cut_samples(asked, wanted, free, rest)
        wanted[free] = None
    return Shape(tuple(wanted), False, shape.by)


def _cut_samples(asked: Asked, wanted: list[Dim], free: int, rest: Dim) -> None:
    """``x.view(-1, n)`` with an unknown number of samples whose size is no multiple and no part of ``n``."""
    shape = asked.shape
    if shape.open or len(shape.dims) < 2 or shape.dims[0] is not None or free != 0 or rest is None:
        return
    sample = product(shape.dims[1:])
    if sample is not None and rest > 1 and sample % rest and rest % sample:
        asked.clash("reshape", f"one sample of {shape} has {sample} values, and rows of {rest} are cut from it")


def _reordered(asked: Asked) -> Value:
    shape = asked.shape
    if asked.name in ("t", "mT") or (asked.name == "transpose" and not asked.args):
        if len(shape.dims) == 2 and not shape.open:
            return Shape(shape.dims[::-1], False, shape.by)
        return ANY
    of_numpy = asked.name == "transpose" and (len(asked.args) == 1 or len(asked.args) > 2)
    if asked.name == "permute" or of_numpy:
        order = _sizes(asked, "dims") or []
        places = [size(o) for o in order]
        if any(p is None for p in places) or shape.open:
            return Shape((None,) * len(places)) if places and not any(isinstance(o, Shape) for o in order) else ANY
        if len(places) != len(shape.dims):
            asked.clash("product", f"{shape} has {len(shape.dims)} axes, and {len(places)} are named")
            return ANY
        count = len(places)
        turned = [(p or 0) % count for p in places]
        return (
            Shape(tuple(shape.dims[p] for p in turned), False, shape.by)
            if sorted(turned) == list(range(count))
            else ANY
        )
    one, other = size(asked.get("dim0", 0)), size(asked.get("dim1", 1))
    if one is None or other is None or asked.name == "movedim":
        return ANY if shape.open else Shape((None,) * len(shape.dims), False, shape.by)
    a, b = shape.axis(one), shape.axis(other)
    if a is None or b is None:
        return ANY
    dims = list(shape.dims)
    dims[a], dims[b] = dims[b], dims[a]
    return Shape(tuple(dims), shape.open, shape.by)


def _squeezed(asked: Asked) -> Value:
    shape = asked.shape
    at = size(asked.get("dim", 0, asked.options.get("axis", UNKNOWN)))
    if asked.name in ("unsqueeze", "expand_dims"):
        if at is None:
            return ANY
        if at < 0:
            place = len(shape.dims) + at + 1
            if place < 0:
                return ANY
            return Shape((*shape.dims[:place], 1, *shape.dims[place:]), shape.open, shape.by)
        if shape.open or at > len(shape.dims):
            return ANY
        return Shape((*shape.dims[:at], 1, *shape.dims[at:]), False, shape.by)
    if at is None:
        if asked.args or asked.options or shape.open or None in shape.dims:
            return ANY
        return Shape(tuple(d for d in shape.dims if d != 1), False, shape.by)
    place_ = shape.axis(at)
    if place_ is None or shape.dims[place_] is None:
        return ANY
    if shape.dims[place_] != 1:
        return shape
    return Shape((*shape.dims[:place_], *shape.dims[place_ + 1 :]), shape.open, shape.by)


def _reduced(asked: Asked) -> Value:
    shape, name = asked.shape, asked.name
    along = asked.options.get("dim", asked.options.get("axis", asked.args[0] if asked.args else None))
    both = name in ("max", "min", "median", "nanmedian") and "axis" not in asked.options  # numpy gives the value alone
    pairs = both and along is not None
    if isinstance(along, Shape):
        return _elementwise(asked, along) if name in ("max", "min") else ANY
    kept = asked.options.get("keepdim", asked.options.get("keepdims", asked.args[1] if len(asked.args) > 1 else False))
    if along is None:
        if kept is False:
            return Shape((), False, shape.by)
        return ANY if shape.open or kept is not True else Shape((1,) * len(shape.dims), False, shape.by)
    axes = list(along.items) if isinstance(along, Items) else list(along) if isinstance(along, tuple) else [along]
    if name == "norm" or kept not in (True, False):
        return ANY
    places = [shape.axis(a) if size(a) is not None else None for a in axes]
    if any(p is None for p in places):
        return (ANY, ANY) if pairs else ANY
    dims = [1 if i in places else d for i, d in enumerate(shape.dims) if kept or i not in places]
    result = Shape(tuple(dims), shape.open, shape.by)
    return (result, result) if pairs else result


def _turned(asked: Asked) -> Value:
    """A turn by quarters: an odd number of them, or one that is not known, may swap the two axes."""
    shape, times, plane = asked.shape, asked.get("k", 0, 1), asked.get("dims", 1, asked.get("axes", 1, (0, 1)))
    axes = [shape.axis(a) for a in plane if isinstance(a, int)] if isinstance(plane, tuple) else []
    if len(axes) != 2 or axes[0] is None or axes[1] is None:
        return ANY
    one, other = shape.dims[axes[0]], shape.dims[axes[1]]
    if one == other or (isinstance(times, int) and times % 2 == 0):
        return shape
    swapped = isinstance(times, int)
    kept = {axes[0]: other if swapped else None, axes[1]: one if swapped else None}
    return Shape(tuple(kept.get(n, d) for n, d in enumerate(shape.dims)), shape.open, shape.by)


def _various(asked: Asked) -> Value:
    shape, name = asked.shape, asked.name
    if name == "expand":
        sizes = [size(s) for s in _sizes(asked) or []]
        if not sizes:
            return ANY
        missing = len(sizes) - len(shape.dims)
        kept = (*(None,) * missing, *shape.dims) if not shape.open and missing >= 0 else (None,) * len(sizes)
        return Shape(tuple(k if s == -1 else s for s, k in zip(sizes, kept, strict=True)), False, shape.by)
    if name in ("repeat", "tile"):
        times = [size(s) for s in _sizes(asked) or []]
        if not times or shape.open or len(times) < len(shape.dims):
            return ANY
        longer: tuple[Dim, ...] = (*(1,) * (len(times) - len(shape.dims)), *shape.dims)
        known = tuple(d * t if d is not None and t is not None else None for d, t in zip(longer, times, strict=True))
        return Shape(known, False, shape.by)
    if name == "chunk":
        count = size(asked.get("chunks", 0))
        along = size(asked.get("dim", 1, 0))
        at = shape.axis(along) if along is not None else None
        if not count or at is None or count > 16:
            return UNKNOWN
        whole = shape.dims[at]
        part = whole // count if whole is not None and whole % count == 0 else None
        return (Shape((*shape.dims[:at], part, *shape.dims[at + 1 :]), shape.open, shape.by),) * count
    return UNKNOWN


def _spatial(asked: Asked) -> Value:
    """Functional pools, interpolation and padding."""
    name, shape = asked.name, asked.shape
    count = next((n for n in (1, 2, 3) if name.endswith(f"{n}d")), 0)
    if "pool" in name and count:
        if shape.open or len(shape.dims) <= count:
            channels = shape.dim(-count - 1) if len(shape.dims) > count else None
            shape = Shape((None, channels, *(None,) * count), False, shape.by)
        if name.startswith("adaptive"):
            wanted = asked.get("output_size", 0)
            sizes = wanted if isinstance(wanted, tuple) else (wanted,) * count
            return Shape((*shape.dims[:-count], *(size(s) for s in sizes)), False, shape.by)
        return pooled(shape, count, asked.get, average="avg" in name)
    if name == "interpolate":
        return upsampled(shape, asked.get("size", 0, None), asked.get("scale_factor", 1, None))
    if name == "pad" and not shape.open:
        given = asked.get("pad", 0)
        if isinstance(given, tuple) and len(given) % 2 == 0 and len(given) // 2 <= len(shape.dims):
            padded: list[Dim] = list(shape.dims)
            for place in range(len(given) // 2):
                one, two, old = size(given[2 * place]), size(given[2 * place + 1]), padded[-1 - place]
                known = old is not None and one is not None and two is not None
                padded[-1 - place] = (old or 0) + (one or 0) + (two or 0) if known else None
            return Shape(tuple(padded), False, shape.by)
    return UNKNOWN
