"""Where the data of a value come from: the arrays at the roots, and how they were indexed on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Table, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, graph, near, parts
from trainwreck.code.rehearsal.questions.turns import one_by_one
from trainwreck.core.row import Row

MAX_PATHS = 64
MAX_LENGTH = 200
MAX_VISITS = 600
"""Values that are looked at for one question: a sum of many products has more ways than anybody can list."""
REDUCTIONS = frozenset(
    """mean std var min max median quantile percentile sum norm amax amin nanmean nanstd nanmedian average logsumexp
    ptp item len cov corrcoef std_mean var_mean aminmax""".split()
)
"""What makes a few numbers of many: such a value carries a statistic of the data, not the data."""
RANDOM = frozenset(
    """randn rand randint randperm permutation normal uniform choice standard_normal random integers shuffle sample
    multinomial bernoulli randn_like rand_like randint_like beta dirichlet poisson exponential gamma
    randrange""".split()
)
ORDERS = frozenset(["randperm", "permutation", "argsort", "choice", "shuffle", "sample"])
"""What gives an order of the elements, or a selection of them."""
CREATES = frozenset(["zeros", "ones", "full", "empty", "eye", "arange", "linspace", "zeros_like", "ones_like"])


@dataclass(frozen=True, slots=True)
class Step:
    """One indexing along the first axis: with what (equal keys: the same elements), and where."""

    key: object
    place: Place | None
    index: Value
    moving: bool
    """It selects another part at each turn or call (a batch, an element), not a fixed part."""


class Path(Row):
    """From an array at the root outwards: the indexings in order, and the values on the way (root first)."""

    root: Node
    steps: tuple[Step, ...]
    nodes: tuple[Node, ...]

    @property
    def fixed(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if not s.moving)


def paths(run: Rehearsing, value: Node) -> list[Path]:
    """The ways from the arrays that ``value`` is made of. Statistics, random numbers and what a module holds are no
    data."""
    known: dict[int, list[Path]] = run.memo.setdefault("paths", {})
    if id(value) not in known:
        known[id(value)] = _paths(value)
    return known[id(value)]


def _paths(value: Node) -> list[Path]:
    found: list[Path] = []
    seen: set[tuple[object, ...]] = set()
    counted: dict[int, int] = {}  # how many turns the counter of a comprehension makes that is put together

    def follow(node: Node, steps: tuple[Step, ...], trail: tuple[Node, ...]) -> None:
        here = (id(node), *(step.key for step in steps))
        if len(found) >= MAX_PATHS or len(seen) >= MAX_VISITS or len(trail) > MAX_LENGTH or here in seen:
            return
        seen.add(here)
        trail = (*trail, node)
        if node.op in ("param", "buffer", "size") or (node.op in RANDOM and not trail[1:]):
            return
        if node.op == "attribute" and node.name in ("shape", "device", "dtype", "ndim"):
            return
        behind: list[Node] = []
        if node.op in ("getitem", "index_select", "take", "gather", "element", "part"):
            base, index = (*node.inputs, None)[:2]
            if node.op == "getitem" and isinstance(index, Node) and counted_table(base):
                follow(index, steps, trail)  # looked up in a table of counts or sums: the rows are those of the numbers
                return
            behind = list(parts(base)) if not isinstance(base, Obj) else []
            if node.op not in ("part", "gather"):
                steps = (*_together(_steps(node, index), base, counted), *steps)
            elif index == 0 and isinstance(base, Node) and base.op == "sort":
                # the sorted values stand in the order that the sort's second part gives
                steps = (Step(("part", "", key_of(base), 1), node.place, node, moving(node)), *steps)
        elif node.op == "split" and node.full.endswith(".train_test_split"):
            steps = (Step(("split", node.name, id(node.place)), node.place, node, False), *steps)
            behind = [n for item in node.inputs for n in parts(item)]
        elif node.op == "setitem" and len(node.inputs) > 2 and _by_rows(node.inputs[1]):
            behind = list(parts(node.inputs[0]))  # what is written stands in rows that it was picked for
        elif (every := one_by_one(node)) is not None:
            counted[id(every[0])] = every[1]
            behind = every[2]
        elif node.op == "map" and node.inputs and isinstance(node.inputs[0], Node):
            behind = list(parts(node.inputs[0]))  # ``column.map(table)``: the table tells what stands for each
        elif node.op in ("full", "full_like") and len(node.inputs) > 1:
            behind = list(parts(node.get("fill_value", 1)))  # one number of the data, as often as is needed
        elif node.op not in RANDOM and node.op not in CREATES:
            behind = [n for item in node.inputs for n in parts(item) if not statistic(n) and n.op != "param"]
        behind = [n for n in behind if n.op not in ("unknown",)]
        if not behind:
            found.append(Path(node, steps, tuple(reversed(trail))))
        for inner in behind:
            follow(inner, steps, trail)

    follow(value, (), ())
    return found


def _together(steps: tuple[Step, ...], base: Value, counted: Mapping[int, int]) -> tuple[Step, ...]:
    """Indexing by a counter whose turns are put together again is a look at all elements, or at the first ones."""
    kept: list[Step] = []
    for step in steps:
        turns = counted.get(id(step.index))
        if turns is None:
            kept.append(step)
            continue
        size = base.shape.dims[0] if isinstance(base, Node) and not base.shape.open and base.shape.dims else None
        if size != turns and all(s.moving for s in kept):
            kept.append(Step(("slice", None, turns, None), step.place, step.index, False) if size else step)
    return tuple(kept)


def statistic(node: Node, depth: int = 0) -> bool:
    """True for a number or a row that summarises many elements, or is computed from such alone."""
    if node.op in REDUCTIONS:
        return not (node.op in ("sum", "norm") and node.get("dim", 1) is not None)
    if node.op not in _ARITHMETIC or depth > 6:
        return False
    inner = [n for item in node.inputs for n in parts(item)]
    return bool(inner) and all(statistic(n, depth + 1) for n in inner)


def _by_rows(index: Value) -> bool:
    """True for the numbers of some rows."""
    plain = isinstance(index, Node) and index.op not in MASKS and index.op in ("getitem", "element", "part", *ORDERS)
    return plain and isinstance(index, Node) and (index.shape.open or len(index.shape.dims) == 1)


def counted_table(node: Value, depth: int = 0) -> bool:
    """True for counts or sums by class, and what is computed from them element by element."""
    if not isinstance(node, Node):
        return False
    if node.op in ("bincount", "histc"):
        return True
    inner = [n for item in node.inputs for n in parts(item)]
    return node.op in _BY_ELEMENT and depth < 6 and any(counted_table(n, depth + 1) for n in inner[:3])


_BY_ELEMENT = frozenset(
    "add sub mul div pow clip clamp maximum sqrt astype float array tensor from_numpy neg log".split()
)
_ARITHMETIC = frozenset(
    """add sub mul div pow clip clamp clamp_min maximum sqrt getitem part astype array asarray tensor as_tensor
    from_numpy float stack concatenate cat round int neg unsqueeze reshape view squeeze either to""".split()
)


def _steps(node: Node, index: Value) -> tuple[Step, ...]:
    """The indexing that ``node`` is; numbers that were themselves taken from an order are two: ``x[order[:9]]``."""
    if isinstance(index, tuple):
        index = index[0] if index else None
    if node.op == "element" and index is None:
        return (Step(("element",), node.place, None, True),)
    if index is None or isinstance(index, str) or index is Ellipsis or _columns(index):
        return ()
    if isinstance(index, Node) and index.op == "index":
        inner = _within(index.inputs[0], node) if index.inputs else ()
        return (*inner, Step(("index",), node.place, index, True))
    return _selected(index, node)


def selected(node: Node) -> tuple[Step, ...]:
    """The indexing along the first axis that a ``getitem`` is, outermost first."""
    return _steps(node, node.inputs[1] if len(node.inputs) > 1 else None)


def _columns(index: Value) -> bool:
    """True for a list of names: columns of a table, all rows of it."""
    if isinstance(index, Node):
        first = index.inputs[0] if index.op == "list" and index.inputs else index
        return isinstance(first, Node) and (first.op, first.name) == ("attribute", "columns")
    texts = index.items if isinstance(index, Items) else ()
    return bool(texts) and all(isinstance(i, str) or (isinstance(i, Node) and i.op == "text") for i in texts)


def _within(index: Value, node: Node) -> tuple[Step, ...]:
    """The numbers of a ``Subset``."""
    place = node.place
    if isinstance(index, Items) and len(index.items) > 1:
        last = index.items[1]
        if (
            isinstance(last, Node)
            and last.op == "counter"
            and last.inputs
            and all(isinstance(v, int) for v in last.inputs)
        ):
            start, end = (0, last.inputs[0]) if len(last.inputs) == 1 else last.inputs[:2]
            return (Step(("slice", start or None, end, None), last.place, index, False),)
        known = index.items[0]
        if isinstance(known, Node) and known.inputs:
            return _selected(known.inputs[0], node)
    if isinstance(index, Node) and index.op == "split":
        return (Step(key_of(index), index.place, index, False),)
    return _selected(index, node) if index is not None else (Step(id(index), place, index, False),)


def _selected(index: Value, node: Node, depth: int = 0) -> tuple[Step, ...]:
    if isinstance(index, Obj) and index.kind == "builtins.slice":
        if all(a is None for a in index.args) or index.args[:2] == (None, None):
            return ()
        start = None if index.args[0] == 0 else index.args[0]
        key = ("slice", key_of(start), key_of(index.args[1]), key_of(index.args[2]))
        return (Step(key, index.place or node.place, index, any(moving(a) for a in index.args)),)
    if isinstance(index, Node) and index.op == "getitem" and depth < 4 and isinstance(index.inputs[0], Node):
        base, inner = index.inputs[0], index.inputs[1]
        if base.op == "arange" and len(base.inputs) == 1 and getattr(base.inputs[0], "op", "") in ("len", "size"):
            return _selected(inner, index, depth + 1)  # all numbers in their order
        if base.op in MASKS and isinstance(inner, Node):  # what was decided for each group, looked up for each row
            return (Step(("mask", key_of(index)), index.place or node.place, index, moving(index)),)
        return (*_selected(base, node, depth + 1), *_selected(inner, index, depth + 1))
    if isinstance(index, Node) and index.op == "part" and isinstance(index.inputs[0], Node) and depth < 4:
        cut = index.inputs[0]  # one of several pieces of an order: ``a, b = np.split(order, [80])``
        order = _bare(cut.inputs[0]) if cut.op in ("split", "array_split", "tensor_split") and cut.inputs else None
        if isinstance(order, Node) and order.op in ("randperm", "permutation", "arange"):
            before = () if order.op == "arange" else _selected(order, node, depth + 1)
            return (*before, Step(key_of(index), index.place or node.place, index, moving(index)))
    if isinstance(index, Node) and index.op == "element" and index.inputs and isinstance(index.inputs[0], Node):
        return _selected(index.inputs[0], node, depth + 1)  # one after the other, all of them
    if isinstance(index, Node) and index.op in ("split", "chunk") and not index.full and not index.name and depth < 4:
        inner = _bare(index.inputs[0]) if index.inputs else None
        if isinstance(inner, Node) and inner.op == "getitem":
            return (*_selected(inner, node, depth + 1), Step(key_of(index), node.place, index, True))
        if isinstance(inner, Node) and inner.op in _COUNTED and (first := _first_rows(inner, node)):
            return (*first, Step(key_of(index), node.place, index, True))
    if isinstance(index, Node) and index.op in _COUNTED and (first := _first_rows(index, node)):
        return (*first, Step(key_of(index), node.place, index, moving(index)))
    if isinstance(index, Node) and index.op in MASKS:
        return (Step(("mask", key_of(index)), node.place, index, moving(index)),)
    if isinstance(index, Node) and index.op in ("tolist", "tensor", "from_numpy", "as_tensor", "list", "long", "array"):
        inner_index = index.inputs[0] if index.inputs else None
        if isinstance(inner_index, Node):
            return _selected(inner_index, node, depth + 1)
    counted = isinstance(index, int) and bool(node.turns)  # the number of the loop in a turn that is known
    return (Step(key_of(index), node.place, index, counted or moving(index)),)


def _bare(index: Value) -> Value:
    """Numbers of rows without what makes a tensor of them."""
    while (
        isinstance(index, Node) and index.op in ("from_numpy", "tensor", "as_tensor", "long", "array") and index.inputs
    ):
        index = index.inputs[0]
    return index


def _first_rows(order: Node, node: Node) -> tuple[Step, ...]:
    """``randperm(n)``, where ``n`` was worked out and is not all there are: the first ``n`` rows."""
    if order.op == "randint" and len(order.inputs) > 1 and not isinstance(order.inputs[1], tuple):
        return ()
    count = order.inputs[0] if order.inputs else None
    if not isinstance(count, Node) or count.op not in ("int", "floor", "mul", "sub", "floor_divide", "floordiv"):
        return ()
    return (Step(("slice", None, key_of(count), None), order.place or node.place, order, moving(count)),)


_COUNTED = frozenset(["randperm", "permutation", "randint"])
MASKS = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "and", "or", "invert", "not", "isin", "isnan"])


def moving(value: Value) -> bool:
    """True where ``value`` changes from turn to turn, or is some element's number."""
    if not isinstance(value, Node):
        return False
    if value.op in ("counter", "argument", "key"):
        return True
    if value.op == "len":
        return bool(value.turns)
    if value.op == "index":
        return not value.inputs
    if value.op in ("split", "setitem", "concatenate", "concat", "cat", "hstack") and not value.turns:
        return False  # made once, outside of all loops, whatever loops its data were filled in
    if value.turns and value.op not in ("split",):
        return True
    return any(moving(n) for item in value.inputs for n in parts(item)) if len(value.inputs) < 6 else False


def key_of(value: Value, depth: int = 0) -> object:
    """Equal for values that are computed alike from the same things."""
    if not isinstance(value, Node):
        if isinstance(value, tuple):
            return tuple(key_of(v, depth + 1) for v in value)
        if isinstance(value, Obj | Items | Table):
            if isinstance(value, Obj) and value.kind == "builtins.slice":
                return ("slice", *(key_of(a, depth + 1) for a in value.args))
            return id(value)
        return value if isinstance(value, int | float | str | bool) or value is None else id(value)
    if value.op in RANDOM or value.op == "argsort" or depth > 6 or not value.inputs:
        return id(value)
    if value.op == "len":
        return ("len",)
    return (value.op, value.name, *(key_of(v, depth + 1) for v in value.inputs))


def trained(run: Rehearsing) -> list[tuple[Event, Node]]:
    """The data that go into each backward: values outside the graph that a value in it was computed from."""
    if "trained data" not in run.memo:
        run.memo["trained data"] = list(_trained(run))
    found: list[tuple[Event, Node]] = run.memo["trained data"]
    return found


def _trained(run: Rehearsing) -> Iterator[tuple[Event, Node]]:
    for event in run.tape:
        if event.name != "backward":
            continue
        told: set[int] = set()
        for node in graph(event.subject):
            if not node.grad:
                continue
            for item in node.inputs:
                for inner in parts(item):
                    if not inner.grad and inner.op != "param" and id(inner) not in told:
                        told.add(id(inner))
                        yield event, inner


def feeding(run: Rehearsing) -> set[int]:
    """``id`` of all values that the subject of a backward was computed from, in the graph or not."""
    if "feeding" not in run.memo:
        run.memo["feeding"] = {id(n) for e in run.tape if e.name == "backward" for n in ancestors(e.subject)}
    found: set[int] = run.memo["feeding"]
    return found


def evaluated(run: Rehearsing) -> list[tuple[Event, Node]]:
    """What is given to modules outside of autograd, or in evaluation mode: the data of an evaluation.

    Calls from inside another module's forward do not count, nor those whose result the training uses (a teacher, a
    target network, the policy while it collects), nor batches that the training is given in the same turn."""
    if "evaluated data" not in run.memo:
        run.memo["evaluated data"] = list(_evaluated(run))
    found: list[tuple[Event, Node]] = run.memo["evaluated data"]
    return found


def _evaluated(run: Rehearsing) -> Iterator[tuple[Event, Node]]:
    used = feeding(run)
    taught: set[int] = set()
    asked: list[Event] = []
    for event in run.tape:
        if event.name != "forward":
            continue
        if any(id(n) in used for n in parts(event.result)):
            taught |= {id(n) for v in (*event.args, *event.options.values()) for n in parts(v) if n.turns}
        elif not event.grad_mode or event.state.get("training") is False:
            asked.append(event)
    for event in asked:
        for value in (*event.args, *event.options.values()):
            for node in parts(value):
                if id(node) in taught and node.turns == event.turns:
                    continue
                if not any(n.op in ("linear", "conv2d", "conv1d", "embedding") for n in near(node, 60)):
                    yield event, node


def meets(loss: Value) -> Iterator[tuple[Node, list[Node], list[Node]]]:
    """Where predictions meet what they are compared with: the operation, the sides in the graph, those outside."""
    for node in graph(loss):
        if not node.grad or node.op in _LAYERS:
            continue
        inner = [n for item in node.inputs for n in parts(item)]
        if len(inner) > 2 and any(n.op == "param" for n in inner):
            continue  # a layer with weights of its own: a cell that is given a state and an element
        inside = [n for n in inner if n.grad and n.op != "param"]
        outside = [n for n in inner if not n.grad and n.op != "param" and _is_data(n)]
        if inside and outside:
            yield node, inside, outside


def _is_data(node: Node) -> bool:
    return not any(n.op in RANDOM for n in [node]) and not statistic(node)


_LAYERS = frozenset(["linear", "conv1d", "conv2d", "conv3d", "embedding", "lstm", "gru", "matmul", "cat", "stack"])

__all__ = [
    "Path", "Step", "candidates", "counted_table", "evaluated", "feeding", "key_of", "meets", "moving", "paths",
    "selected", "statistic", "trained",
]  # fmt: skip
