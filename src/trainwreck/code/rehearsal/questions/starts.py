"""Parameters that start at zero and stay there, since no gradient ever reaches them."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import graph, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import both_zero, starts_at_zero
from trainwreck.code.rehearsal.questions.gradients import going_on
from trainwreck.code.rehearsal.questions.roles import JOINS, PRODUCTS, STRUCTURE, backwards, behind

FLAT = frozenset(["relu", "relu6", "abs", "square", "norm"])
"""What is zero at zero, with a gradient of zero there (torch's choice where there is a kink)."""
ODD = frozenset(
    """tanh gelu silu leaky_relu elu selu softsign sin neg sum mean scale hardswish mish celu prelu identity
    sigmoid_linear""".split()
)
"""What is zero at zero, and lets a gradient through."""
AFFINE = frozenset("linear conv1d conv2d conv3d".split())
NORMS = frozenset(["batch_norm", "layer_norm", "group_norm", "rms_norm"])
"""What is divided by its spread, and then multiplied by a weight: zero where that is, or the value itself."""
SHIFTED = frozenset("addmm baddbmm addbmm addmv addr".split())
"""A first input to which the product of the two others is added."""
LOADS = frozenset(["load_state_dict", "load", "load_file", "from_pretrained", "load_model"])


def stuck(run: Rehearsing) -> Iterator[Answer]:
    """The parameters whose gradient is zero in every step: a factor in front of each stays zero as well.

    Those that get a gradient at zero leave it, and may then free others, until nothing changes any more."""
    losses = [e for e in backwards(run) if isinstance(e.subject, Node)]
    given = _given(run) if losses else None
    if given is None or any(True for _ in both_zero(run)):
        return
    starts = sorted(e.serial for e in run.tape if e.name == "backward")
    values = [n for e in losses for n in graph(e.subject)]
    params = {id(n): n for n in values if n.op == "param"}
    learning = ((k, p) for k, p in params.items() if p.trainable is not False and k not in given)
    zero = {k for k, p in learning if _surely_zero(p, _start(starts, p))}
    first = set(zero)
    for _ in range(len(zero) + 1):
        moved = {k for e in losses for k in _moved(e.subject, zero)} & zero
        if not moved:
            break
        zero -= moved
    dead = [params[k] for k in first & zero]
    places = [(p, place) for p in dead if (place := _written_at(p, _start(starts, p))) is not None]
    if places and losses[0].place is not None:
        places.sort(key=lambda pair: (_by_default(pair[0]), getattr(pair[1][0], "lineno", 0)))
        text = "this parameter starts at zero and its gradient is a multiple of another zero: it never moves"
        others = tuple(place for _, place in places[1:3])
        yield Answer(places[0][1], text, (*others, losses[0].place))


def _given(run: Rehearsing) -> set[int] | None:
    """``id`` of the parameters that take over weights which were kept, as a second leg does behind a first one; None
    where it isn't known whose weights come from elsewhere."""
    last = max((e.serial for e in run.tape if e.name == "backward"), default=0)
    loads = [e for e in run.tape if e.name in LOADS and e.serial < last and e.serial not in going_on(run)]
    into = [e for e in loads if e.name == "load_state_dict" and isinstance(e.subject, Obj)]
    modules = [e.subject for e in into if is_module(e.subject)]
    other = [e for e in loads if all(e is not i for i in into)]
    if any(e.name != "load" for e in other) or (other and not modules):
        return None
    return {id(p) for module in modules for p in run.parameters(module)[0]}


def _start(starts: list[int], param: Node) -> int:
    """The first backward after the parameter was made: an adapter comes after the training of what it adapts."""
    return next((s for s in starts if s > param.serial), starts[0])


def _surely_zero(param: Node, start: int) -> bool:
    written = [e for e in param.writes if e.serial < start and e.name != "requires_grad"]
    if not written and _by_default(param):
        return True
    return not any(e.maybe for e in written) and starts_at_zero(param, start)


def _by_default(param: Node) -> bool:
    """True for the bias of a normalisation that nothing is written into: torch makes it zero."""
    owner = param.owner
    norm = owner is not None and "Norm" in owner.name and owner.kind.startswith("torch.nn.")
    return norm and param.name.endswith("bias") and not any(e.name != "requires_grad" for e in param.writes)


def _written_at(param: Node, start: int) -> Place | None:
    written = [e.place for e in param.writes if e.serial < start and e.name != "requires_grad" and e.place is not None]
    return written[-1] if written else param.place


def _moved(loss: Value, zero: set[int]) -> set[int]:
    """``id`` of the parameters that get a gradient which is not zero, or of which that is not known."""
    known: dict[int, bool] = {}
    seen: set[int] = set()
    queue = list(parts(loss))
    while queue:
        node = queue.pop()
        if id(node) in seen or not (node.grad or node.op == "param"):
            continue
        seen.add(id(node))
        for value in _onwards(node, zero, known):
            queue += parts(value)
    return seen


def _onwards(node: Node, zero: set[int], known: dict[int, bool]) -> list[Value]:
    """The inputs whose gradient is not zero where that of ``node`` is not."""
    inputs = list(node.inputs)
    if node.op in FLAT or (node.op == "pow" and inputs[1:] and isinstance(inputs[1], int | float) and inputs[1] > 1):
        return [] if inputs and _is_zero(inputs[0], zero, known) else inputs
    if node.op in SHIFTED and len(inputs) > 2:
        return [inputs[0], *(i for i, o in (inputs[1:3], inputs[2:0:-1]) if not _is_zero(o, zero, known))]
    if node.op in PRODUCTS or node.op == "mul":
        factors = [i for i in inputs if isinstance(i, Node)]
        return [f for f in factors if not any(_is_zero(o, zero, known) for o in factors if o is not f)] + (
            []
            if len({id(f) for f in factors}) == len(factors)
            else [f for f in factors if not _is_zero(f, zero, known)]
        )
    if (node.op in AFFINE or node.op in NORMS) and len(inputs) > 1:
        value, weight = inputs[:2]
        through = [] if _is_zero(weight, zero, known) else [value]
        return [*through, *([] if _is_zero(value, zero, known) else [weight]), *inputs[2:]]
    return [*inputs, *node.options.values()]


def _is_zero(value: Value, zero: set[int], known: dict[int, bool], depth: int = 0) -> bool:
    """True where all elements of the value are zero as long as the parameters in ``zero`` are."""
    if isinstance(value, int | float):
        return value == 0
    if not isinstance(value, Node) or depth > 60:
        return False
    if id(value) not in known:
        known[id(value)] = False
        known[id(value)] = _computed_zero(value, zero, known, depth + 1)
    return known[id(value)]


def _computed_zero(node: Node, zero: set[int], known: dict[int, bool], depth: int) -> bool:
    inputs = node.inputs
    if node.op == "param":
        return id(node) in zero
    if node.op in SHIFTED and len(inputs) > 2:
        product = any(_is_zero(i, zero, known, depth) for i in inputs[1:3])
        return product and _is_zero(inputs[0], zero, known, depth)
    if node.op in PRODUCTS or node.op == "mul":
        return any(_is_zero(i, zero, known, depth) for i in inputs if isinstance(i, Node | int | float))
    if (node.op in AFFINE or node.op in NORMS) and len(inputs) > 1:
        product = any(_is_zero(i, zero, known, depth) for i in inputs[:2])
        return product and all(_is_zero(i, zero, known, depth) for i in inputs[2:] if isinstance(i, Node))
    if node.op == "embedding":
        tables = [i for i in inputs if isinstance(i, Node) and i.op == "param"]
        return bool(tables) and all(_is_zero(t, zero, known, depth) for t in tables)
    if node.op in ("add", "sub") and len(inputs) > 1:
        return all(_is_zero(i, zero, known, depth) for i in inputs[:2])
    if node.op in ("div", "pow") or node.op in FLAT or node.op in ODD:
        return bool(inputs) and _is_zero(inputs[0], zero, known, depth)
    if node.op in STRUCTURE or node.op in JOINS or node.op in ("either", "dropout"):
        inner = behind(node)
        return bool(inner) and all(_is_zero(i, zero, known, depth) for i in inner or [])
    return False
