"""What kind of values a node holds: raw outputs of a network, probabilities, logarithms, data; and their bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Place, Value, candidates
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors, carries, graph, parts
from trainwreck.core.row import Row

STRUCTURE = frozenset(
    """view reshape permute transpose t T mT H squeeze unsqueeze flatten contiguous clone to float double half bfloat16
    cuda cpu type type_as getitem element expand expand_as repeat repeat_interleave index_select gather
    take_along_dim masked_select diagonal swapaxes swapdims movedim rearrange chunk split unbind flip roll narrow select
    view_as reshape_as ravel unflatten identity tile astype requires_grad_ retain_grad detach detach_ data diag
    pin_memory as_tensor tensor from_numpy numpy""".split()
)
"""What moves or selects values and leaves each as it is."""
JOINS = frozenset(["cat", "concat", "concatenate", "stack", "hstack", "vstack"])
RAW = frozenset(
    """linear bilinear conv1d conv2d conv3d convtranspose1d convtranspose2d convtranspose3d conv_transpose2d
    lazylinear""".split()
)
"""Layers whose outputs are any real numbers."""
PROBABILITIES = frozenset(["softmax", "sigmoid", "softmin", "hardsigmoid", "softmax2d", "expit", "gumbel_softmax"])
TESTS = frozenset(
    """eq ne lt le gt ge logical_and logical_or logical_not logical_xor isnan isfinite isinf isin eye one_hot""".split()
)
"""What gives zeros and ones."""
PRODUCTS = frozenset(["matmul", "einsum", "bmm", "mm", "baddbmm"])
HIGHEST = frozenset(["max", "amax", "logsumexp"])
"""What taken off leaves nothing above zero."""


def core(value: Value) -> list[Node]:
    """The values that ``value`` was selected or reshaped from."""
    found: list[Node] = []
    seen: set[int] = set()

    def follow(item: Value, depth: int) -> None:
        for node in parts(item):
            if id(node) in seen or depth > 60:
                continue
            seen.add(id(node))
            inner = behind(node)
            if inner is None:
                found.append(node)
            else:
                for one in inner:
                    follow(one, depth + 1)

    follow(value, 0)
    return found


def behind(node: Node) -> list[Value] | None:
    """What ``node`` only selects or reshapes; None where it computes."""
    if node.op == "either":
        return [c for c in candidates(node) if c is not None]
    if node.op in JOINS and node.inputs:
        first = node.inputs[0]
        return list(first) if isinstance(first, tuple) else list(first.items) if isinstance(first, Items) else None
    if node.op == "part" and node.inputs and isinstance(node.inputs[0], Node):
        return [node.inputs[0]] if node.inputs[0].op in STRUCTURE else None
    if node.op == "max" and node.shapes:
        return [node.inputs[0]]
    if node.op in STRUCTURE and node.inputs and isinstance(node.inputs[0], Node):
        return [node.inputs[0]]
    if node.op == "split" and not node.full and node.inputs:
        return [node.inputs[0]]
    if node.op == "setitem" and len(node.inputs) > 1:
        return [node.inputs[0], node.inputs[1]]
    if node.op == "dropout" and node.inputs:
        return [node.inputs[0]]
    return None


def sum_in(value: Value) -> Node | None:
    """The sum that a value is, moved and joined with others at most."""
    at = next(iter(parts(value)), None)
    for _ in range(8):
        if at is None or at.op == "add":
            break
        goes_on = at.op in (*STRUCTURE, *JOINS, "either", "setitem") and at.inputs
        at = next(iter(parts(at.inputs[0])), None) if goes_on else None
    return at


def unknown(node: Node) -> bool:
    return node.op in OPAQUE or node.unknown


def foreign(node: Node) -> bool:
    """True for the result of a package whose functions are not known: it may hold anything and cut any graph."""
    return bool(node.full) and not node.full.startswith(("torch", "builtins", "math", "numpy", "einops"))


def backwards(run: Rehearsing) -> list[Event]:
    """One backward for each place and each way of calls that leads there, the last turn of it."""
    found: dict[tuple[int, ...], Event] = {}
    for event in run.tape:
        if event.name == "backward" and event.place is not None:
            found[tuple(id(at[0]) for at in (*event.stack, event.place))] = event
    return list(found.values())


def trained(run: Rehearsing) -> list[Node]:
    """Every value that some backward goes through, each once."""
    if "trained" not in run.memo:
        seen: dict[int, Node] = {}
        for event in backwards(run):
            for node in graph(event.subject):
                if node.grad or node.op == "param":
                    seen[id(node)] = node
        run.memo["trained"] = list(seen.values())
    found: list[Node] = run.memo["trained"]
    return found


def users(run: Rehearsing) -> dict[int, list[Node]]:
    """For each value (by ``id``) those that were computed from it, options included."""
    if "users" not in run.memo:
        table: dict[int, list[Node]] = {}
        for node in run.nodes:
            inside = {id(inner) for item in (*node.inputs, *node.options.values()) for inner in parts(item)}
            for key in inside:
                table.setdefault(key, []).append(node)
        run.memo["users"] = table
    found: dict[int, list[Node]] = run.memo["users"]
    return found


def learns(value: Value) -> bool:
    """True where parameters stand behind the value."""
    return any(n.op == "param" for n in ancestors(value, through=carries))


def made_at(run: Rehearsing, node: Node) -> Place | None:
    """Where a reader would say that ``node`` is made: the construction of a layer in a stack, else the call."""
    if node.owner is not None and node.owner.place is not None:
        for holder in run.objects:
            if holder.name in ("Sequential", "ModuleList") and any(v is node.owner for v in holder.attributes.values()):
                return node.owner.place
    return node.place


def loss_place(node: Node) -> Place | None:
    """Of a loss: where its object is made, else where it is called."""
    return node.owner.place if node.owner is not None and node.owner.place is not None else node.place


class Bounds(Row):
    """All values lie in ``low..high``. ``free``: really spread over all of it, without a bound that is known."""

    low: float
    high: float
    free: bool = False


ANYTHING = Bounds(-math.inf, math.inf)


def bounds(value: Value, depth: int = 0) -> Bounds:
    """The interval that a value is sure to lie in."""
    if isinstance(value, bool):
        return Bounds(0.0, 1.0)
    if isinstance(value, int | float):
        return Bounds(float(value), float(value))
    if not isinstance(value, Node) or depth > 40:
        return ANYTHING
    inputs = value.inputs
    first = inputs[0] if inputs else None
    op = value.op
    if op in RAW:
        return Bounds(-math.inf, math.inf, True)
    if op in PRODUCTS:
        return Bounds(-math.inf, math.inf, any(bounds(i, depth + 1).free for i in inputs if isinstance(i, Node)))
    if op in PROBABILITIES or op in TESTS:
        return Bounds(0.0, 1.0)
    if op in ("log_softmax", "logsigmoid"):
        return Bounds(-math.inf, 0.0)
    if op in ("tanh", "sin", "cos", "erf", "softsign", "cosine_similarity", "hardtanh", "lstm", "gru", "rnn"):
        return Bounds(-1.0, 1.0)
    if op in ("cdist", "pdist", "pairwise_distance") and inputs and all(_of_length_one(i) for i in inputs[:2]):
        return Bounds(0.0, 2.0)
    if op in ("relu", "softplus", "abs", "exp", "sqrt", "square", "norm", "var", "std", "cdist", "pairwise_distance"):
        high = bounds(first, depth + 1).high if op in ("relu", "exp", "sqrt") else math.inf
        return Bounds(0.0, _exp(high) if op == "exp" else high if op == "relu" else math.inf)
    if op == "relu6":
        return Bounds(0.0, 6.0)
    if op == "pow" and len(inputs) > 1 and isinstance(inputs[1], int | float) and inputs[1] % 2 == 0:
        base = bounds(first, depth + 1)
        return Bounds(0.0, max(base.low**2, base.high**2) if inputs[1] == 2 else math.inf)
    if op in ("clamp", "clip", "clamp_min", "clamp_max", "maximum", "minimum"):
        return _clamped(value, depth)
    if op == "sub" and len(inputs) == 2 and any(n.op in HIGHEST for n in ancestors(inputs[1], through=_selects)):
        return Bounds(-math.inf, 0.0)
    if op in ("and", "or", "invert") and inputs and all(bounds(i, depth + 1) == Bounds(0.0, 1.0) for i in inputs):
        return Bounds(0.0, 1.0)
    if op in ("add", "sub", "mul", "div", "neg") and inputs:
        return _arithmetic(op, [bounds(i, depth + 1) for i in inputs[:2]])
    if op in ("batch", "loaded", "mul_", "buffer") and first is not None and op != "batch":
        return bounds(first, depth + 1)
    if op in ("min", "max") and len(inputs) > 1 and value.full == f"builtins.{op}":
        found = [bounds(i, depth + 1) for i in inputs]
        pick = min if op == "min" else max
        return Bounds(pick(b.low for b in found), pick(b.high for b in found))
    if op == "counter":
        if value.full != "builtins.range" or not all(isinstance(i, int) for i in inputs):
            return ANYTHING
        ends = (0, *inputs)[:2] if len(inputs) == 1 else inputs[:2]
        return Bounds(float(min(ends)), float(max(ends)))
    if op == "linspace" and len(inputs) > 1 and all(isinstance(i, int | float) for i in inputs[:2]):
        return Bounds(float(min(inputs[:2])), float(max(inputs[:2])))
    if op in ("ones", "ones_like", "zeros", "zeros_like"):
        return Bounds(1.0, 1.0) if op.startswith("ones") else Bounds(0.0, 0.0)
    if op in ("full", "full_like", "new_full"):
        return bounds(value.get("fill_value", 2 if op == "new_full" else 1), depth + 1)
    if op in ("rand", "rand_like", "random", "random_sample", "bernoulli"):
        return Bounds(0.0, 1.0)
    if op in ("uniform", "randint", "integers"):
        return _drawn(value)
    if isinstance(first, tuple | Items) and op in ("tensor", "as_tensor", "array", "asarray", "column_stack"):
        found = [bounds(i, depth + 1) for i in _flat(first)]
        return _union(found) if found else ANYTHING
    inner = behind(value)
    if inner is not None:
        found = [bounds(i, depth + 1) for i in inner]
        return _union(found) if found else ANYTHING
    if isinstance(first, Node) and len(inputs) == 1 and op in ("item", "tolist", "int", "floor", "ceil", "round"):
        base = bounds(first, depth + 1)
        return Bounds(_floor(base.low), -_floor(-base.high)) if op not in ("item", "tolist") else base
    if op in ("mean", "amax", "amin", "max", "min", "median", "part") and isinstance(first, Node):
        base = bounds(first, depth + 1)
        return Bounds(base.low, base.high, base.free and op != "mean")
    if op == "sum" and isinstance(first, Node):
        base = bounds(first, depth + 1)
        return Bounds(0.0 if base.low >= 0 else -math.inf, 0.0 if base.high <= 0 else math.inf, base.free)
    return ANYTHING


def _of_length_one(value: Value) -> bool:
    """True for vectors that were normalised."""
    return not isinstance(value, Node) or (bool(core(value)) and all(n.op == "normalize" for n in core(value)))


def _floor(number: float) -> float:
    return math.floor(number) if math.isfinite(number) else number


def _flat(value: Value) -> Iterator[Value]:
    """The elements of lists in lists."""
    if isinstance(value, tuple | Items):
        for item in value if isinstance(value, tuple) else value.items:
            yield from _flat(item)
    else:
        yield value


def _drawn(node: Node) -> Bounds:
    """The interval of equally likely draws, where both ends are written out."""
    named = sum(name != "inplace" for name in node.options)
    given = node.inputs[: max(0, len(node.inputs) - named)]  # options stand behind what has a position
    given = given if node.full else given[1:]  # a method: the first is the generator itself
    whole = node.op != "uniform" and not node.full.startswith("random.")  # the upper end is not among them
    default: tuple[Value, Value] = (None, None) if whole else (0.0, 1.0)
    low = node.options.get("low", given[0] if given else default[0])
    high = node.options.get("high", given[1] if len(given) > 1 else default[1])
    if whole and not isinstance(high, int | float):
        low, high = 0, low  # one number is the upper end
    if isinstance(low, int | float) and isinstance(high, Node):
        return Bounds(float(low), math.inf)  # up to a number that is not known
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return ANYTHING
    return Bounds(float(min(low, high)), float(max(low, high) - whole))


def _selects(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("part", "either", "attribute")


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _union(found: list[Bounds]) -> Bounds:
    return Bounds(min(b.low for b in found), max(b.high for b in found), any(b.free for b in found))


def _clamped(node: Node, depth: int) -> Bounds:
    base = bounds(node.inputs[0] if node.inputs else None, depth + 1)
    low, high = base.low, base.high
    floor = node.options.get("min", node.options.get("a_min"))
    ceiling = node.options.get("max", node.options.get("a_max"))
    rest = node.inputs[1 : len(node.inputs) - sum(k != "inplace" for k in node.options)]
    if node.op in ("clamp", "clip"):
        floor = rest[0] if rest and floor is None else floor
        ceiling = rest[1] if len(rest) > 1 and ceiling is None else ceiling
    elif node.op in ("clamp_min", "maximum"):
        floor = rest[0] if rest and floor is None else floor
    elif rest and ceiling is None:
        ceiling = rest[0]
    if floor is not None:
        low = max(low, bounds(floor, depth + 1).low) if isinstance(floor, Node | int | float) else low
    if ceiling is not None:
        high = min(high, bounds(ceiling, depth + 1).high) if isinstance(ceiling, Node | int | float) else high
    kept = base.free and floor is None and ceiling is None
    if (floor is not None and not isinstance(floor, int | float)) or (
        ceiling is not None and not isinstance(ceiling, int | float)
    ):
        return Bounds(low, high)
    return Bounds(low, high, kept)


def _arithmetic(op: str, sides: list[Bounds]) -> Bounds:
    one = sides[0]
    if op == "neg" or len(sides) < 2:
        return Bounds(-one.high, -one.low, one.free)
    other = sides[1]
    free = one.free or other.free
    if op == "add":
        return Bounds(one.low + other.low, one.high + other.high, free)
    if op == "sub":
        return Bounds(one.low - other.high, one.high - other.low, free)
    if op == "div":
        if other.low > 0 and one.low >= 0:
            return Bounds(0.0, _product(one.high, 1 / other.low), free)
        return (
            _scaled(one, 1 / other.low) if other.low == other.high and other.low else Bounds(-math.inf, math.inf, False)
        )
    ends = [_product(a, b) for a in (one.low, one.high) for b in (other.low, other.high)]
    known = one.low == one.high or other.low == other.high
    return Bounds(min(ends), max(ends), free and known and not (one.low == one.high == 0))


def _scaled(one: Bounds, factor: float) -> Bounds:
    ends = (_product(one.low, factor), _product(one.high, factor))
    return Bounds(min(ends), max(ends), one.free)


def _product(one: float, other: float) -> float:
    return 0.0 if one == 0 or other == 0 else one * other


def losses(run: Rehearsing, *ops: str) -> Iterator[Node]:
    """The library's losses (of these kinds) that run backward."""
    for node in trained(run):
        if node.op in ops:
            yield node


def given(node: Node, name: str, position: int) -> Value:
    """An argument of a loss: layers take tensors only by place or by name."""
    if name in node.options and not (node.owner is not None and name in node.owner.options):
        return node.options[name]
    return node.inputs[position] if position < len(node.inputs) else None
