"""How large are weights when training starts, against the number of inputs that each sums over?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.gradients import going_on
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, trained, users

GAIN = 4.0
"""Standard deviation times the root of the number of inputs: 1 keeps the size of what goes through (Glorot and Bengio
2010), the root of 2 with relu (He et al. 2015). From 4 on each layer multiplies the variance by 16."""
ALONE = 8.0
"""The same for one layer alone."""
FAINT = 0.02
"""Below it a layer leaves less than a fiftieth of what goes in."""
SEVERAL = 3
"""So many faint layers behind one another leave nothing of the signal."""
FILLS = frozenset(["normal_", "trunc_normal_", "uniform_"])
FILLED = frozenset(name[:-1] for name in FILLS)
NORMS = ("norm", "batchnorm", "layernorm", "groupnorm", "standardize")
LAYERS = frozenset(["linear", "conv1d", "conv2d", "conv3d"])
THROUGH = frozenset(
    """add relu leaky_relu gelu silu elu tanh sigmoid dropout getitem part either softplus view reshape flatten
    permute transpose contiguous squeeze unsqueeze maxpool1d maxpool2d max_pool1d max_pool2d avgpool2d""".split()
)
"""What may stand between a layer and its normalisation."""


def wide(run: Rehearsing) -> Iterator[Answer]:
    """Weights so large for the width of their layer that what goes through grows from layer to layer."""
    found = [(layer, gain, place) for layer, gain, place in gains(run) if gain >= GAIN]
    wide_ones = {id(layer) for layer, _, _ in found}
    again = {id(layer) for layer, _, _ in found if _recurrent(layer)}
    behind = {id(layer): {id(n) for n in graph(layer)} & wide_ones - {id(layer)} for layer, _, _ in found}
    stacked = {key for one, others in behind.items() if others for key in (one, *others)}
    told: set[int] = set()
    for layer, gain, place in found:
        if (id(layer) in stacked | again or gain >= ALONE) and id(place[0]) not in told:
            told.add(id(place[0]))
            most = max(g for _, g, p in found if p[0] is place[0])
            text = f"weights this large make the output of a layer up to {most:.0f} times as large as its input"
            yield Answer(place, text, (layer.place,) if layer.place is not None else ())


def _recurrent(layer: Node) -> bool:
    """True where what comes out of a layer goes into it again in the next step."""
    weights = [i for i in layer.inputs[:2] if isinstance(i, Node) and _bare(i) is not None]
    kept = {id(_bare(w)) for w in weights}
    inner = (n for n in graph(layer) if n is not layer and n.op == layer.op)
    return any(id(_bare(i)) in kept for n in inner for i in n.inputs[:2] if isinstance(i, Node) and _bare(i))


def faint(run: Rehearsing) -> Iterator[Answer]:
    """Weights so small, in layer after layer, that nothing of the input arrives."""
    known = list(gains(run))
    small = [(layer, gain, place) for layer, gain, place in known if 0 < gain < FAINT]
    if len(small) >= SEVERAL and len(small) * 2 > len(known):
        layer, gain, place = small[0]
        text = f"weights this small leave {gain:.0e} of what goes into each of {len(small)} layers"
        yield Answer(place, text, (layer.place,) if layer.place is not None else ())


def gains(run: Rehearsing) -> Iterator[tuple[Node, float, Place]]:
    """Layers of the network that learns, by how much each multiplies what goes in, with where its weight is set."""
    first = [e.serial for e in backwards(run)]
    start = min((e.serial for e in run.tape if e.name == "backward"), default=0)
    later = going_on(run)
    loaded = (e for e in run.tape if e.name in ("load_state_dict", "from_pretrained") and e.serial not in later)
    if not first or any(e.serial < start for e in loaded):
        return
    seen: set[int] = set()
    for layer in trained(run):
        if layer.op not in LAYERS and layer.op not in ("matmul", "mm", "bmm"):
            continue
        for place, value in enumerate(layer.inputs[:2]):
            param = _bare(value)
            if param is None or id(param) in seen or param.trainable is False:
                continue
            seen.add(id(param))
            fan_in = _fan_in(layer, place, value)
            size = at_start(run, param, start)
            if fan_in is None or size is None or _normalised(run, layer) or _picks(layer, place):
                continue
            yield layer, size[0] * math.sqrt(fan_in) * _rescaled(run, layer) * _next(run, layer, start), size[1]


def _bare(value: Value) -> Node | None:
    """The parameter that a weight is a view of."""
    for _ in range(6):
        if not isinstance(value, Node) or value.op == "param":
            return value if isinstance(value, Node) else None
        if value.op not in STRUCTURE or not value.inputs:
            return None
        value = value.inputs[0]
    return None


def _fan_in(layer: Node, place: int, weight: Value) -> int | None:
    assert isinstance(weight, Node)
    dims = weight.shape.dims
    if weight.shape.open or len(dims) < 2:
        return None
    if layer.op in LAYERS:
        sizes = dims[1:] if place == 1 else ()
    else:
        sizes = (dims[-2],) if place == 1 else (dims[-1],)
    known = [s for s in sizes if isinstance(s, int)]
    return math.prod(known) if known and len(known) == len(sizes) else None


def _normalised(run: Rehearsing, layer: Node) -> bool:
    """True if the size of what comes out is set again right behind the layer, or is not used as it is."""
    queue, seen = [layer], {id(layer)}
    for _ in range(40):
        if not queue:
            return False
        for user in users(run).get(id(queue.pop()), ()):
            if any(user.op.endswith(n) for n in NORMS) or user.op in ("normalize", "cosine_similarity", "sin", "cos"):
                return True
            if (user.op in THROUGH or _scales(user)) and id(user) not in seen:
                seen.add(id(user))
                queue.append(user)
    return True


def _scales(node: Node) -> bool:
    """True for a product with, or a quotient by, a number."""
    return node.op in ("mul", "div") and any(isinstance(i, int | float) for i in node.inputs[:2])


def _picks(layer: Node, place: int) -> bool:
    """True where the input is one-hot: one row of the weights is taken, nothing is summed."""
    value: Value = layer.inputs[1 - place] if layer.op not in LAYERS else layer.inputs[0]
    while isinstance(value, Node) and value.inputs and value.op in STRUCTURE:
        value = value.inputs[0]
    return isinstance(value, Node) and value.op == "one_hot"


def _next(run: Rehearsing, layer: Node, start: int) -> float:
    """0 where the very next layer multiplies all of it with zeros, as in a low-rank addition; else 1."""
    for user in users(run).get(id(layer), ()):
        if user.op in (*LAYERS, "matmul", "mm", "bmm") and user.inputs[0] is layer and len(user.inputs) > 1:
            weight = _bare(user.inputs[1])
            size = at_start(run, weight, start) if weight is not None else None
            if size is not None and size[0] == 0:
                return 0.0
    return 1.0


def _rescaled(run: Rehearsing, layer: Node) -> float:
    """The number that the output is multiplied with at once, the smallest where it goes several ways (the residual of
    an equation has it with several coefficients); without a known one the layer counts as harmless."""
    return min((_multiplied(run, layer, user) for user in users(run).get(id(layer), ())), default=1.0)


def _multiplied(run: Rehearsing, layer: Node, user: Node) -> float:
    if user.op not in ("mul", "div") or len(user.inputs) < 2:
        return 1.0
    mine = user.inputs[0] is layer
    if not mine and user.op == "div":
        return 1.0
    other = number(run, user.inputs[1 if mine else 0])
    if not other:
        return 0.0
    return abs(other) if user.op == "mul" else 1 / abs(other)


def at_start(run: Rehearsing, param: Node, before: int) -> tuple[float, Place] | None:
    """The root mean square of a parameter when training starts, where the program sets it, and where."""
    factor = 1.0
    for event in reversed([e for e in param.writes if e.serial < before and not _echo(e)]):
        if event.maybe or event.place is None:
            return None
        if event.name in ("mul_", "div_") and len(event.args) == 1:
            by = number(run, event.args[0])
            if not by:
                return None
            factor *= by if event.name == "mul_" else 1 / by
            continue
        written = _written(run, event, param)
        return None if written is None else (written * abs(factor), event.place)
    made = param.inputs[0] if param.inputs else None
    size = _size(run, made)
    return None if size is None or param.place is None else (size * abs(factor), param.place)


def _echo(event: Event) -> bool:
    """True for a change of the mode, and for what a change of ``.data`` in place leaves behind itself."""
    given = event.args[0] if event.args else None
    inplace = isinstance(given, Node) and given.options.get("inplace") is True
    return event.name == "requires_grad" or (event.name == "copy_" and inplace)


def _written(run: Rehearsing, event: Event, param: Node) -> float | None:
    args = [a for a in event.args if not (isinstance(a, Node) and a.op in ("param", "data", "detach"))]
    if event.name == "zeros_":
        return 0.0
    if event.name in FILLS:
        return _filled(run, event.name, args, event.options)
    if event.name.startswith("xavier_"):
        gain, dims = number(run, event.options.get("gain", args[0] if args else 1.0)), param.shape.dims
        sizes = [d for d in dims if isinstance(d, int)]
        if gain is None or len(sizes) != len(dims) or len(dims) < 2:
            return None
        return gain * math.sqrt(2 / ((sizes[0] + sizes[1]) * math.prod(sizes[2:])))
    if event.name == "copy_" and args:
        return _size(run, args[0])
    return None


def _filled(run: Rehearsing, name: str, args: list[Value], options: dict[str, Value]) -> float | None:
    def given(position: int, default: float, *names: str) -> float | None:
        named = next((options[n] for n in names if n in options), None)
        return number(run, named if named is not None else args[position] if position < len(args) else default)

    if name != "uniform_":
        return given(1, 1.0, "std")
    low, high = given(0, 0.0, "a", "from"), given(1, 1.0, "b", "to")
    return None if low is None or high is None else math.sqrt((low * low + low * high + high * high) / 3)


def _size(run: Rehearsing, value: Value, depth: int = 0) -> float | None:
    """The root mean square of what is drawn anew; None where it is not known."""
    if not isinstance(value, Node) or depth > 8:
        return None
    if value.op in ("zeros", "zeros_like"):
        return 0.0
    if value.op in ("randn", "randn_like"):
        return 1.0
    if value.op in ("rand", "rand_like"):
        return math.sqrt(1 / 3)
    if value.op in FILLED and value.options.get("inplace") is True:  # torch.empty(n, d).uniform_(-a, a)
        return _filled(run, f"{value.op}_", list(value.inputs[1:]), value.options)
    if value.op == "normal" and value.full.startswith("torch"):
        return number(run, value.get("std", 1))
    if value.op in ("mul", "div") and len(value.inputs) == 2:
        one, other = value.inputs
        if value.op == "mul" and not isinstance(one, Node):
            one, other = other, one
        size, by = _size(run, one, depth + 1), number(run, other)
        if size is None or not by:
            return None
        return size * abs(by) if value.op == "mul" else size / abs(by)
    if value.op in ("add", "sub") and len(value.inputs) == 2:  # torch.rand(n, d) * 2 - 1
        size, mean, by = _size(run, value.inputs[0], depth + 1), _mean(run, value), number(run, value.inputs[1])
        base = _mean(run, value.inputs[0])
        if size is None or mean is None or base is None or by is None:
            return None
        return math.sqrt(max(size * size - base * base, 0.0) + mean * mean)
    if value.op in STRUCTURE and value.inputs:
        return _size(run, value.inputs[0], depth + 1)
    return None


def _mean(run: Rehearsing, value: Value, depth: int = 0) -> float | None:
    """The mean of what is drawn between 0 and 1, or about 0, and moved and scaled by numbers."""
    if not isinstance(value, Node) or depth > 8:
        return None
    if value.op in ("rand", "rand_like"):
        return 0.5
    if value.op in ("randn", "randn_like"):
        return 0.0
    if value.op not in ("add", "sub", "mul", "div") or len(value.inputs) != 2:
        return None
    one, other = value.inputs
    if value.op in ("add", "mul") and not isinstance(one, Node):
        one, other = other, one
    mean, by = _mean(run, one, depth + 1), number(run, other)
    if mean is None or by is None or (value.op == "div" and by == 0):
        return None
    return {"add": mean + by, "sub": mean - by, "mul": mean * by}.get(value.op, mean / (by or 1.0))
