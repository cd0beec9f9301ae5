"""Shapes around sequences: cells and hidden states, padding and packing, drawn tokens, repeated rows."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Items, Node, Value
from trainwreck.code.rehearsal.reshaping import literal
from trainwreck.code.shapes.domain import ANY, Dim, Shape, product, size

CELLS = frozenset(["grucell", "lstmcell", "rnncell"])
SEQUENCES = CELLS | frozenset(
    """hidden pad_sequence pad_packed_sequence pack_padded_sequence multinomial topk repeat_interleave
    nonzero""".split()
)


def sequence_shape(node: Node) -> Value:
    """The shape of one of ``SEQUENCES``, or those of its parts."""
    first = node.inputs[0] if node.inputs else None
    shape = first.shape if isinstance(first, Node) else ANY
    match node.op:
        case "grucell" | "rnncell" | "lstmcell":
            state = _state(node, shape)
            return (state, state) if node.op == "lstmcell" else state
        case "hidden":
            return _hidden(node, first)
        case "pad_sequence":
            return _padded(first)
        case "pad_packed_sequence":
            return (Shape((None, None, shape.dim(-1))), Shape((None,)))
        case "multinomial":
            count = size(node.get("num_samples", 1))
            return ANY if shape.open or not shape.dims else Shape((*shape.dims[:-1], count), False, shape.by)
        case "topk":
            along = node.get("dim", 2, -1)
            kept = shape.replaced(along, size(node.get("k", 1))) if isinstance(along, int) and shape.dims else ANY
            return (kept, kept)
        case "repeat_interleave":
            return _repeated(node, shape)
        case "nonzero" if not shape.open:
            if node.get("as_tuple", 1, False) is True or node.full.startswith("numpy"):
                return (Shape((None,)),) * len(shape.dims)
            return Shape((None, len(shape.dims)))
    return ANY


def _state(node: Node, shape: Shape) -> Shape:
    """(samples, width) of what a cell gives."""
    width = size(node.owner.get("hidden_size", 1)) if node.owner is not None else None
    if shape.open or len(shape.dims) not in (1, 2):
        return Shape((width,), True)
    return Shape((*shape.dims[:-1], width), False)


def _hidden(node: Node, output: Value) -> Shape:
    """(layers and directions, samples, width) of the last state of a recurrent layer."""
    layer = node.owner
    if layer is None or not isinstance(output, Node):
        return ANY
    both = layer.get("bidirectional", 7, False)
    if not isinstance(both, bool) or layer.get("proj_size", 8, 0) != 0 or layer.name not in ("LSTM", "GRU", "RNN"):
        return ANY
    given = output.inputs[0] if output.inputs and isinstance(output.inputs[0], Node) else None
    packed = given is not None and given.op in ("pack_padded_sequence", "pack_sequence")
    if not packed and (output.shape.open or len(output.shape.dims) != 3):
        return ANY
    layers = size(layer.get("num_layers", 2, 1))
    batch: Dim = None
    if not packed:
        batch = output.shape.dims[0 if layer.get("batch_first", 4, False) is True else 1]
    return Shape((layers * (1 + both) if layers is not None else None, batch, size(layer.get("hidden_size", 1))))


def _padded(value: Value) -> Shape:
    """Sequences of any length side by side, along which axis ever."""
    items = list(value) if isinstance(value, tuple) else value.items if isinstance(value, Items) else []
    inner = literal(items[0]) if items else ANY
    return ANY if inner.open or not inner.dims else Shape((None, None, *inner.dims[1:]))


def _repeated(node: Node, shape: Shape) -> Shape:
    along, times = node.get("dim", 2), size(node.get("repeats", 1))
    if shape.open:
        return ANY
    if along is None:
        whole = product(shape.dims)
        return Shape((whole * times if whole is not None and times is not None else None,))
    at = shape.axis(along) if isinstance(along, int) else None
    if at is None:
        return ANY
    old = shape.dims[at]
    return shape.replaced(at, old * times if old is not None and times is not None else None)
