"""What layers of ``torch.nn`` make of a shape, and where the shape is not one that they take."""

from __future__ import annotations

from collections.abc import Callable

from trainwreck.code.calls import written
from trainwreck.code.shapes.domain import ANY, UNKNOWN, Clash, Dim, Items, Layer, Shape, Value, product, size

Report = Callable[[Clash], None]
KEEPS = frozenset(
    [
        "ReLU",
        "ReLU6",
        "GELU",
        "SiLU",
        "ELU",
        "SELU",
        "CELU",
        "Mish",
        "Tanh",
        "Sigmoid",
        "Softmax",
        "LogSoftmax",
        "Softplus",
        "Hardtanh",
        "Hardswish",
        "LeakyReLU",
        "Hardsigmoid",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "AlphaDropout",
        "Identity",
        "PReLU",
        "Softsign",
        "Softmax2d",
        "RReLU",
        "LogSigmoid",
    ]
)
"""Layers that change no axis."""
CHANNEL_NORMS = {"BatchNorm2d": 2, "BatchNorm3d": 3, "InstanceNorm2d": 2, "InstanceNorm3d": 3, "InstanceNorm1d": 1}


def pair(value: Value, count: int) -> tuple[Value, ...]:
    """An option that may be one number or one for each spatial axis."""
    if isinstance(value, tuple) and len(value) == count:
        return value
    return (value,) * count


def convolved(length: Dim, kernel: Value, stride: Value, padding: Value, dilation: Value, *, ceil: bool = False) -> Dim:
    """Length of an axis after a convolution or a pool (the formula of torch.nn.Conv2d); None where unknown."""
    if padding == "same":
        return length if stride == 1 else None
    numbers = [size(v) for v in (length, kernel, stride, 0 if padding == "valid" else padding, dilation)]
    if any(n is None for n in numbers) or numbers[2] == 0:
        return None
    span, k, s, p, d = (n or 0 for n in numbers)
    over = span + 2 * p - d * (k - 1) - 1
    if over < 0:
        return None
    return (-(-over // s) if ceil else over // s) + 1


def told(layer: Layer) -> str:
    return written(layer.call.node)[:60]


def expect(layer: Layer, shape: Shape, got: Dim, wanted: Dim, what: str, report: Report) -> bool:
    """True unless both are known and differ, which is reported."""
    if got is None or wanted is None or got == wanted:
        return True
    origin = f" from {written(shape.by.node)[:50]}, line {shape.by.line}" if shape.by is not None else ""
    kind = what
    last = shape.dims[-1] if shape.dims else None
    if what == "channels" and len(shape.dims) >= 3 and last == wanted and (last or 9) <= 4:
        kind = "channels-last"
    text = f"{told(layer)} takes {wanted} {what}, and gets {got}: {shape}{origin}"
    report(Clash(kind, layer.call, text, (shape.by,) if shape.by is not None else ()))
    return False


def applied(layer: Layer, given: list[Value], report: Report) -> Value:
    """What calling the layer gives."""
    shape = given[0] if given and isinstance(given[0], Shape) else ANY
    name = layer.name
    if name in KEEPS:
        return given[0] if given and isinstance(given[0], Shape) else UNKNOWN
    if name == "Linear":
        expect(layer, shape, shape.dim(-1), size(layer.get("in_features", 0)), "features", report)
        out = size(layer.get("out_features", 1))
        return shape.replaced(-1, out, layer.call) if shape.dims else Shape((out,), True, layer.call)
    if name == "LazyLinear":
        out = size(layer.get("out_features", 0))
        return shape.replaced(-1, out, layer.call) if shape.dims else Shape((out,), True, layer.call)
    if name == "Bilinear":
        return Shape((size(layer.get("out_features", 2)),), True, layer.call)
    if name.startswith(("Conv", "LazyConv")):
        return _convolution(layer, shape, report)
    if name in CHANNEL_NORMS or name == "BatchNorm1d" or name == "GroupNorm":
        return _channel_norm(layer, shape, report)
    if name in ("LayerNorm", "RMSNorm"):
        return _layer_norm(layer, shape, report)
    if name == "Embedding":
        return Shape((*shape.dims, size(layer.get("embedding_dim", 1))), shape.open, layer.call)
    if name == "EmbeddingBag":  # one row for each bag: of a table of numbers, or of numbers in a row with offsets
        bags = shape.dims[0] if not shape.open and len(shape.dims) == 2 else None
        return Shape((bags, size(layer.get("embedding_dim", 1))), False, layer.call)
    if name in ("LSTM", "GRU", "RNN"):
        return _recurrent(layer, shape, report)
    if name == "MultiheadAttention":
        expect(layer, shape, shape.dim(-1), size(layer.get("embed_dim", 0)), "features", report)
        return (shape, UNKNOWN)
    if name in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        expect(layer, shape, shape.dim(-1), size(layer.get("d_model", 0)), "features", report)
        return shape
    if name == "Transformer":
        return given[1] if len(given) > 1 and isinstance(given[1], Shape) else UNKNOWN
    if name in ("TransformerEncoder", "TransformerDecoder"):
        inner = layer.get("encoder_layer", 0, layer.get("decoder_layer", 0))
        return applied(inner, given, report) if isinstance(inner, Layer) else shape
    return _spatial(layer, shape)


def _spatial_count(name: str) -> int:
    return next((n for n in (1, 2, 3) if f"{n}d" in name), 0)


def _batched(shape: Shape, spatial: int) -> Shape:
    """The shape with a batch axis: one with that number of axes is taken as it is, an unknown one as batched."""
    if not shape.open and len(shape.dims) in (spatial + 1, spatial + 2):
        return shape
    if shape.open and len(shape.dims) <= spatial + 2:
        return Shape((None,) * (spatial + 2 - len(shape.dims)) + shape.dims, False, shape.by)
    return Shape((None,) * (spatial + 2), False, None)


def _convolution(layer: Layer, shape: Shape, report: Report) -> Value:
    spatial = _spatial_count(layer.name)
    if not spatial:
        return UNKNOWN
    given = _batched(shape, spatial)
    at = len(given.dims) - spatial - 1
    lazy = int("Lazy" in layer.name)  # it takes the channels that come, and all its arguments stand one earlier
    if not lazy and not expect(layer, given, given.dims[at], size(layer.get("in_channels", 0)), "channels", report):
        return UNKNOWN
    out = size(layer.get("out_channels", 1 - lazy))
    options = [pair(layer.get(n, p - lazy, d), spatial) for n, p, d in _CONV_OPTIONS]
    dims: list[Dim] = []
    for axis in range(spatial):
        kernel, stride, padding, dilation = (o[axis] if axis < len(o) else UNKNOWN for o in options)
        length = given.dims[at + 1 + axis]
        if "Transpose" in layer.name:
            extra = pair(layer.get("output_padding", 5 - lazy, 0), spatial)[axis]
            dilated = pair(layer.get("dilation", 8 - lazy, 1), spatial)[axis]
            dims.append(_transposed(length, kernel, stride, padding, extra, dilated))
        else:
            dims.append(convolved(length, kernel, stride, padding, dilation))
    return Shape((*given.dims[:at], out, *dims), False, layer.call)


_CONV_OPTIONS = (("kernel_size", 2, UNKNOWN), ("stride", 3, 1), ("padding", 4, 0), ("dilation", 5, 1))


def _transposed(length: Dim, kernel: Value, stride: Value, padding: Value, extra: Value, dilation: Value) -> Dim:
    """Length after a transposed convolution (the formula of torch.nn.ConvTranspose2d)."""
    numbers = [size(v) for v in (length, kernel, stride, padding, extra, dilation)]
    if any(n is None for n in numbers):
        return None
    n, k, s, p, e, d = (v or 0 for v in numbers)
    return (n - 1) * s - 2 * p + d * (k - 1) + e + 1


def _channel_norm(layer: Layer, shape: Shape, report: Report) -> Value:
    group = layer.name == "GroupNorm"
    wanted = size(layer.get("num_channels", 1)) if group else size(layer.get("num_features", 0))
    if layer.name == "BatchNorm1d" or group:
        if shape.open or len(shape.dims) < 2:
            return shape
        at = 1
    else:
        shape = _batched(shape, CHANNEL_NORMS[layer.name])
        at = len(shape.dims) - CHANNEL_NORMS[layer.name] - 1
    expect(layer, shape, shape.dims[at], wanted, "channels", report)
    return shape


def _layer_norm(layer: Layer, shape: Shape, report: Report) -> Value:
    wanted = layer.get("normalized_shape", 0)
    sizes = wanted if isinstance(wanted, tuple) else tuple(wanted.items) if isinstance(wanted, Items) else (wanted,)
    for back, item in enumerate(reversed(sizes), 1):
        if back <= len(shape.dims) and not expect(layer, shape, shape.dims[-back], size(item), "features", report):
            break
    return shape


def _recurrent(layer: Layer, shape: Shape, report: Report) -> Value:
    expect(layer, shape, shape.dim(-1), size(layer.get("input_size", 0)), "features", report)
    hidden, both = size(layer.get("hidden_size", 1)), layer.get("bidirectional", 7, False)
    projected = layer.get("proj_size", 8, 0)
    if projected != 0 or both not in (True, False):
        return UNKNOWN
    width = hidden * 2 if hidden is not None and both else hidden
    out = shape.replaced(-1, width, layer.call) if shape.dims else Shape((width,), True, layer.call)
    layers = size(layer.get("num_layers", 2, 1))
    first = layers * (2 if both else 1) if layers is not None else None
    state = Shape((first, None, hidden), False, layer.call) if len(shape.dims) != 2 or shape.open else ANY
    return (out, (state, state) if layer.name == "LSTM" else state)


def _spatial(layer: Layer, shape: Shape) -> Value:
    """Pools, flattening and upsampling."""
    name, spatial = layer.name, _spatial_count(layer.name)
    if name == "Flatten":
        return flattened(shape, layer.get("start_dim", 0, 1), layer.get("end_dim", 1, -1))
    if name == "Unflatten":
        return _unflattened(shape, layer)
    if name.startswith("Adaptive") and spatial:
        given = _batched(shape, spatial)
        wanted = pair(layer.get("output_size", 0), spatial)
        kept = given.dims[: len(given.dims) - spatial]
        return Shape((*kept, *(size(w) for w in wanted)), False, given.by)
    if "Pool" in name and spatial:
        return pooled(_batched(shape, spatial), spatial, layer.get, average="Avg" in name)
    if name in ("Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"):
        return upsampled(shape, layer.get("size", 0, None), layer.get("scale_factor", 1, None))
    if name == "PixelShuffle" and len(shape.dims) == 4 and not shape.open:
        r = size(layer.get("upscale_factor", 0))
        n, c, h, w = shape.dims
        if r:
            return Shape((n, c // (r * r) if c else None, h * r if h else None, w * r if w else None), False, shape.by)
    return UNKNOWN


def _unflattened(shape: Shape, layer: Layer) -> Value:
    """One axis taken apart into several."""
    at = shape.axis(along) if isinstance(along := layer.get("dim", 0), int) else None
    sizes = layer.get("unflattened_size", 1)
    if at is None or not isinstance(sizes, tuple | list):
        return UNKNOWN
    made = tuple(size(s) for s in sizes)
    return Shape((*shape.dims[:at], *made, *shape.dims[at + 1 :]), shape.open, shape.by)


def pooled(shape: Shape, spatial: int, get: Callable[..., Value], *, average: bool) -> Shape:
    kernel = pair(get("kernel_size", 0), spatial)
    stride_given = get("stride", 1, None)
    stride = kernel if stride_given is None else pair(stride_given, spatial)
    padding = pair(get("padding", 2, 0), spatial)
    dilation = pair(1 if average else get("dilation", 3, 1), spatial)
    ceil = get("ceil_mode", 3 if average else 5, False)
    at = len(shape.dims) - spatial
    dims = [
        convolved(shape.dims[at + i], kernel[i], stride[i], padding[i], dilation[i], ceil=ceil is True)
        if ceil in (True, False)
        else None
        for i in range(spatial)
    ]
    return Shape((*shape.dims[:at], *dims), False, shape.by)


def upsampled(shape: Shape, wanted: Value, scale: Value) -> Value:
    if shape.open or len(shape.dims) < 3:
        return ANY
    spatial = len(shape.dims) - 2
    if wanted is not None and wanted is not UNKNOWN:
        return Shape((*shape.dims[:2], *(size(w) for w in pair(wanted, spatial))), False, shape.by)
    scales = pair(scale, spatial)
    known = [
        int(d * s) if d is not None and isinstance(s, int | float) and not isinstance(s, bool) else None
        for d, s in zip(shape.dims[2:], scales, strict=False)
    ]
    return Shape((*shape.dims[:2], *known), False, shape.by) if len(known) == spatial else ANY


def flattened(shape: Shape, start: Value, end: Value) -> Value:
    """``flatten(start, end)``; with an unknown number of axes nothing is known."""
    first, last = size(start), size(end)
    if first is None or last is None or shape.open:
        return ANY
    count = len(shape.dims)
    first, last = first % count if count else 0, last % count if count else 0
    if not count or first > last:
        return shape if count else Shape((1,), False, shape.by)
    merged = product(shape.dims[first : last + 1])
    return Shape((*shape.dims[:first], merged, *shape.dims[last + 1 :]), False, shape.by)
