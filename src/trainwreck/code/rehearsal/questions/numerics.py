"""Operations on the way of a backward whose value or slope is infinite for values that can occur."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import starts_at_zero
from trainwreck.code.rehearsal.questions.roles import RAW, behind, bounds, core, trained, users
from trainwreck.code.rehearsal.questions.scale import Size, size
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.code.rehearsal.questions.vanishing import vanishes

LOGS = frozenset(["log", "log2", "log10"])
STEEP = frozenset(["log", "sqrt", "rsqrt", "reciprocal", "acos", "asin", "arccos", "log2", "log10"])
"""Functions whose slope is infinite, or that are not defined, at a border of their domain."""
NORMS = frozenset(["batch_norm", "layer_norm", "group_norm", "rms_norm", "instance_norm", "normalize"])
LARGE = 100
"""Inputs of this size give outputs above 88, where exp of float32 ends, with the usual initial weights."""
COMPARED = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])


def log_of_zero(run: Rehearsing) -> Iterator[Answer]:
    for node in trained(run):
        if node.op not in LOGS or node.place is None or not node.grad or not node.inputs:
            continue
        why = vanishes(node.inputs[0])
        if why and not _weighted_by_itself(run, node):
            yield Answer(node.place, f"the logarithm of {why} is infinite once it underflows")


def _weighted_by_itself(run: Rehearsing, log: Node) -> bool:
    """``p * log(p)``: an entropy."""
    own = {id(n) for n in core(log.inputs[0])}
    for user in users(run).get(id(log), ()):
        if user.op == "mul" and any(id(n) in own for i in user.inputs if i is not log for n in core(i)):
            return True
    return False


def exp_overflow(run: Rehearsing) -> Iterator[Answer]:
    """A softmax by hand without the maximum taken off."""
    for node in trained(run):
        if node.op != "exp" or node.place is None or not node.inputs or bounds(node.inputs[0]).high < 80:
            continue
        free = bounds(node.inputs[0]).free
        if (log := _logged(run, node, free)) is not None:
            text = (
                "the logarithm of an exponential without a bound is infinite for large values: softplus and logsumexp"
            )
            yield Answer(log.place or node.place, f"{text} take the greatest off first", (node.place,))
        elif not free:
            continue
        elif any(_divides_own_sum(run, user, node) for user in users(run).get(id(node), ())):
            text = "a softmax by hand without subtracting the maximum: it overflows for large scores"
            yield Answer(node.place, text)
        elif (scale := _scaled_input(run, node)) is not None:
            text = f"this output has no bound and is exponentiated, and the inputs are scaled by {scale:g}"
            raw = next((n for n in ancestors(node) if n.op in RAW and n.place is not None), node)
            yield Answer(raw.place or node.place, text, (node.place,))


def _logged(run: Rehearsing, node: Node, free: bool) -> Node | None:
    """The logarithm in ``log(1 + exp(x))`` and ``log1p(exp(x))``; for outputs of a layer in ``log(exp(x).sum())``."""
    for user in users(run).get(id(node), ()):
        if user.op == "log1p":
            return user
        one = user.op == "add" and any(isinstance(i, int | float) and i == 1 for i in user.inputs[:2])
        if one or (free and user.op == "sum" and not isinstance(user.inputs[0], tuple)):
            return next((u for u in users(run).get(id(user), ()) if u.op == "log"), None)
    return None


def _scaled_input(run: Rehearsing, node: Node) -> float | None:
    """A constant of a hundred or more that the inputs of the network are multiplied with, and divided by no other.

    Where the size of the inputs is known, ``scale.large_inputs`` speaks of it."""
    sizes: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    if any(n.op in NORMS for n in ancestors(node)):
        return None
    for layer in ancestors(node):
        given = layer.inputs[0] if layer.op in RAW and layer.inputs else None
        if not isinstance(given, Node) or given.grad:
            continue
        if size(given, sizes) is not None:
            continue
        for inner in ancestors(given):
            factor = next((i for i in inner.inputs if isinstance(i, int | float) and abs(i) >= LARGE), None)
            if inner.op == "div" and factor is not None:
                return None
            if inner.op == "mul" and factor is not None:
                return float(factor)
    return None


def _divides_own_sum(run: Rehearsing, user: Node, node: Node) -> bool:
    """``e / e.sum(...)``, or ``log(e.sum(...))``."""
    if user.op == "div" and user.inputs and user.inputs[0] is node:
        return any(n.op == "sum" and node in n.inputs[:1] for n in ancestors(user.inputs[1]))
    if user.op == "sum" and node in user.inputs[:1]:
        return any(u.op in LOGS for u in users(run).get(id(user), ()))
    return False


def sqrt_at_zero(run: Rehearsing) -> Iterator[Answer]:
    """A root of squared differences of all pairs of one thing, of a relu, of a correlation's arc cosine at 1."""
    for node in trained(run):
        if node.place is None or not node.grad or not node.inputs:
            continue
        half = node.op == "pow" and len(node.inputs) > 1 and node.inputs[1] in (0.5, -0.5)
        if node.op in ("sqrt", "rsqrt") or half:
            if pair := _pairs(node.inputs[0]):
                yield Answer(node.place, f"{pair}, and the root of 0 has no gradient")
            elif (zero := _of_zeros(node.inputs[0])) is not None:
                yield Answer(
                    node.place, f"{zero.name or 'a parameter'} begins at zero, and the root of 0 has no gradient"
                )
            elif vanishes(node.inputs[0]) in ("a relu",):
                yield Answer(node.place, "a relu is exactly zero for many elements, and the root of 0 has no gradient")
        elif node.op in ("acos", "arccos", "asin") and all(
            n.op in ("cosine_similarity",) for n in core(node.inputs[0])
        ):
            yield Answer(node.place, "the slope of the arc cosine is infinite at a similarity of 1")


def _of_zeros(value: Value) -> Node | None:
    """The parameter whose squares are summed up, where it holds zeros when training begins."""
    total = value if isinstance(value, Node) and value.op in ("sum", "mean") and value.inputs else None
    square = total.inputs[0] if total is not None else None
    if not isinstance(square, Node) or not square.inputs or square.op not in ("pow", "square", "mul"):
        return None
    inner = core(square.inputs[0])
    param = inner[0] if len(inner) == 1 and inner[0].op == "param" and inner[0].trainable is not False else None
    if param is None:
        return None
    norm = isinstance(param.owner, Obj) and "Norm" in param.owner.name
    return param if starts_at_zero(param) or (norm and param.name.endswith("bias")) else None


def _pairs(value: Value) -> str:
    """Words where the value is a distance of each element of a thing to every element of it."""
    for node in _additive(value):
        if node.op in ("add", "addmm", "addmm_"):
            return "each element is compared with itself too"
        if node.op == "sub" and len(node.inputs) == 2:
            one, other = (_spread(i) for i in node.inputs)
            if one is not None and other is not None and one[0] is other[0] and one[1] != other[1]:
                return "each element is compared with itself too"
            if _own_products(node.inputs[1]):
                return "each element is compared with itself too"
        if node.op == "cdist" and len(node.inputs) > 1 and node.inputs[0] is node.inputs[1]:
            return "each element is compared with itself too"
    return ""


def _additive(value: Value) -> Iterator[Node]:
    """The differences below sums, squares and selections; nothing where a constant is added."""
    queue = list(parts(value))
    for _ in range(40):
        if not queue:
            return
        node = queue.pop()
        if node.op in ("sub", "cdist") or _multiplied_out(node):
            yield node
        elif node.op in ("sum", "mean", "square", "abs", "cumsum", "relu") or _squares(node) or _at_zero(node):
            queue += list(parts(node.inputs[0]))
        elif (inner := behind(node)) is not None and node.op not in ("getitem", "gather", "masked_select"):
            queue += [n for i in inner for n in parts(i)]


def _at_zero(node: Node) -> bool:
    """``x.clamp(min=0)``: what is below zero becomes exactly zero."""
    floor = node.options.get("min", node.inputs[1] if len(node.inputs) > 1 else None)
    return node.op in ("clamp", "clamp_min", "clip") and number_of(floor) == 0.0


def _own_products(value: Value) -> bool:
    """True for ``2 * x @ x.t()``: products of all pairs of rows of one thing."""
    node = _unscaled(value)
    if node is None or node.op not in ("matmul", "mm") or len(node.inputs) < 2:
        return False
    sides = [_unscaled(i) for i in node.inputs[:2]]
    turned = sides[1] is not None and sides[1].op in ("t", "T", "mT", "transpose") and bool(sides[1].inputs)
    return turned and sides[0] is not None and sides[1] is not None and _unscaled(sides[1].inputs[0]) is sides[0]


def _multiplied_out(node: Node) -> bool:
    """``|a|^2 - 2 a b + |b|^2`` for all pairs of rows of one thing, in whatever order it is summed up."""
    terms = _summands(node, 1.0) if node.op in ("add", "addmm", "addmm_") else []
    minus = [t for t, sign in terms if sign < 0]
    plus = [t for t, sign in terms if sign > 0]
    if len(minus) != 1 or len(plus) != 2 or not _own_products(minus[0]):
        return False
    product = _unscaled(minus[0])
    rows = _unscaled(product.inputs[0]) if product is not None else None
    return all(_squared_rows(p, product, rows) for p in plus)


def _summands(value: Value, sign: float, depth: int = 0) -> list[tuple[Value, float]]:
    """What is added up, each with its sign; ``addmm`` adds a product."""
    if not isinstance(value, Node) or len(value.inputs) < 2 or depth > MOST_SUMMANDS:
        return [(value, sign)]
    if value.op in ("add", "sub") and not value.options:
        first, second = value.inputs[:2]
        other = sign if value.op == "add" else -sign
        return [*_summands(first, sign, depth + 1), *_summands(second, other, depth + 1)]
    if value.op in ("addmm", "addmm_") and len(value.inputs) > 2 and value.get("beta", None, 1) == 1:
        alpha = number_of(value.options.get("alpha", 1))
        product = Node("matmul", value.inputs[1:3], grad=value.grad)
        return [*_summands(value.inputs[0], sign, depth + 1), (product, sign * (alpha or 0))]
    if value.op == "neg":
        return _summands(value.inputs[0], -sign, depth + 1)
    rest = [i for i in value.inputs[:2] if number_of(i) is None] if value.op == "mul" else []
    factor = next((n for i in value.inputs[:2] if (n := number_of(i)) is not None), 1.0)
    if len(rest) == 1 and factor < 0:
        return _summands(rest[0], -sign, depth + 1)
    return [(value, sign)]


MOST_SUMMANDS = 6


def _squared_rows(value: Value, product: Node | None, rows: Node | None) -> bool:
    """``x.pow(2).sum(1)`` or the diagonal of ``product`` (x @ x.t()), along either axis."""
    for _ in range(MOST_SUMMANDS):
        if not isinstance(value, Node) or not value.inputs:
            return False
        if value.op in ("diagonal", "diag"):
            return value.inputs[0] is product
        if value.op == "sum":
            square = value.inputs[0]
            squared = isinstance(square, Node) and bool(square.inputs) and (square.op == "square" or _squares(square))
            return isinstance(square, Node) and squared and square.inputs[0] is rows
        if value.op not in ("getitem", "unsqueeze", "view", "reshape", "t", "T", "mT", "transpose", "expand"):
            return False
        value = value.inputs[0]
    return False


def _unscaled(value: Value) -> Node | None:
    """Without the numbers that it is multiplied by."""
    while isinstance(value, Node) and value.op == "mul" and len(value.inputs) > 1:
        rest = [i for i in value.inputs[:2] if number_of(i) is None]
        if len(rest) != 1:
            break
        value = rest[0]
    return value if isinstance(value, Node) else None


def _squares(node: Node) -> bool:
    """``x ** 2`` or ``x * x``."""
    return node.inputs[1:2] == (2,) if node.op == "pow" else node.op == "mul" and len({id(i) for i in node.inputs}) == 1


def _spread(value: Value) -> tuple[Node, tuple[object, ...]] | None:
    """The value that axes were added to, and how."""
    if not isinstance(value, Node) or not value.inputs or not isinstance(value.inputs[0], Node):
        return None
    if value.op == "unsqueeze":
        return value.inputs[0], tuple(value.inputs[1:])
    if value.op == "getitem":
        index = value.inputs[1] if isinstance(value.inputs[1], tuple) else (value.inputs[1],)
        if None in index and all(p is None or p is Ellipsis or isinstance(p, Obj) for p in index):
            return value.inputs[0], tuple("new" if p is None else "all" for p in index)
    if value.op == "view" or value.op == "reshape":
        return None
    return None


def where_nan(run: Rehearsing) -> Iterator[Answer]:
    """A branch of ``where`` that is steep exactly where the other one is taken."""
    for node in trained(run):
        if node.op != "where" or len(node.inputs) < 3 or node.place is None or not node.grad:
            continue
        tested = _tested(node.inputs[0])
        if not tested:
            continue
        for branch in node.inputs[1:3]:
            found = _steep(branch, tested)
            if found is not None and found.place is not None:
                text = "this branch is differentiated for every element, also where it is not taken: 0 times inf is NaN"
                yield Answer(found.place, text, (node.place,))
                break


def _tested(condition: Value) -> set[int]:
    """The values (by ``id``) that a condition compares with a constant near the border of a domain."""
    found: set[int] = set()
    for node in ancestors(condition, through=lambda n: n.op in ("and", "or", "invert", *COMPARED, "bool", "either")):
        if node.op in COMPARED and len(node.inputs) == 2:
            for side, other in (node.inputs, node.inputs[::-1]):
                if isinstance(other, int | float) and abs(other) <= 1 and isinstance(side, Node):
                    inner = side.inputs[0] if side.op == "abs" and side.inputs else None
                    found |= {id(side), *(id(n) for v in (side, inner) for n in core(v))}
    return found


def _steep(branch: Value, tested: set[int]) -> Node | None:
    """A steep function of a tested value itself, on the way to ``branch``."""
    for node in ancestors(branch):
        if not node.inputs:
            continue
        argument = node.inputs[0]
        if node.op == "div" and len(node.inputs) > 1:
            argument = node.inputs[1]
        elif node.op == "pow":
            power = node.inputs[1] if len(node.inputs) > 1 else None
            if not (isinstance(power, float | int) and power < 1 and power != 0):
                continue
        elif node.op not in STEEP:
            continue
        if any(id(n) in tested for n in (*parts(argument), *core(argument))) and _reaches_gradient(node, branch):
            return node
    return None


def _reaches_gradient(node: Node, branch: Value) -> bool:
    """True where the steep value hangs in the graph, or is a factor in the slope of something that does."""
    if node.grad:
        return True
    for other in ancestors(branch):
        if not other.grad or other.op not in ("mul", "div", "pow", "square", "exp"):
            continue
        if other.op in ("mul", "div"):
            sides = [i for i in other.inputs[:2] if isinstance(i, Node)]
            if len(sides) < 2 or not any(s.grad for s in sides):
                continue
        if any(n is node for n in ancestors(other)):
            return True
    return False


def std_single(run: Rehearsing) -> Iterator[Answer]:
    """A deviation with Bessel's correction over an axis of one element."""
    for node in run.nodes:
        if node.op not in ("std", "var", "std_mean", "var_mean") or node.place is None or not node.inputs:
            continue
        if node.full.startswith(("numpy", "np", "statistics")) or not isinstance(node.inputs[0], Node):
            continue
        if node.options.keys() & {"unbiased", "correction", "ddof"}:
            continue
        rest = node.inputs[1 : len(node.inputs) - len(node.options)]
        along = node.options.get("dim", rest[0] if rest else None)
        scalar = not node.inputs[0].shape.open and node.inputs[0].shape.dims == ()
        if along is None and (scalar or _single(node)):
            yield Answer(node.place, "the deviation is taken over a single number: 0/0")
        elif isinstance(along, int) and not isinstance(along, bool) and node.inputs[0].shape.dim(along) == 1:
            yield Answer(node.place, "the deviation is taken over an axis of one element: 0/0")


def _single(node: Node) -> bool:
    """True for a piece of ``column.split(1)``."""
    piece = node.inputs[0]
    whole = piece.inputs[0] if piece.op in ("element", "getitem") and piece.inputs else None
    if not isinstance(whole, Node) or whole.op != "split" or len(whole.inputs) < 2 or whole.inputs[1] != 1:
        return False
    column = whole.inputs[0]
    return isinstance(column, Node) and not column.shape.open and len(column.shape.dims) == 1
