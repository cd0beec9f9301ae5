"""How many neighbours the nodes of a drawn graph have, where the program divides by it: some have none."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.classes import span
from trainwreck.code.rehearsal.questions.empty_groups import GUARDS
from trainwreck.code.rehearsal.questions.roles import users
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown

MOST = 400_000
"""Elements of an array that is drawn: the links of six hundred nodes."""
TRIES = 4
WANTED = 3
"""Of so many trials, how many must hold a row without any: what happens once in a while is no fault that is sure."""
COUNTS = frozenset(["sum", "bincount", "index_add", "scatter_add", "add_at"])
FILLED = {"zeros": 0.0, "zeros_like": 0.0, "new_zeros": 0.0, "ones": 1.0, "ones_like": 1.0, "new_ones": 1.0}
MOVED = frozenset("float double to squeeze unsqueeze view reshape flatten astype sqrt from_numpy numpy tensor".split())
UNIFORM = frozenset(["rand", "rand_like", "random", "random_sample"])
NORMAL = frozenset(["randn", "randn_like", "standard_normal"])
WHOLE = frozenset(["randint", "integers"])
SOURCES = UNIFORM | NORMAL | WHOLE | {"bernoulli"}
STEPS = 4


def nodes_without_links(run: Rehearsing) -> Iterator[Answer]:
    """Links are drawn, and a power below zero is taken of how many each node has: of none it is no number.

    Worked out with draws of our own; said only where nearly every draw has such a node."""
    feeding: set[int] | None = None
    for node in run.nodes:
        count = _count(node)
        if count is None or node.place is None or node.grad or _guarded(run, node):
            continue
        if feeding is None:
            feeding = {id(n) for e in run.tape if e.name == "backward" for n in ancestors(e.subject)}
        if id(node) in feeding and any(n.op in SOURCES for n in ancestors(count)) and _often_zero(count):
            text = "some rows here hold nothing at all (worked out with draws like those of the program): their sum is "
            yield Answer(
                node.place, text + "zero, and this is no number", (count.place,) if count.place is not None else ()
            )
            return


def _count(node: Node) -> Node | None:
    """The sum of each row that a value is divided by: ``/ d``, ``d ** -0.5``, ``1 / d.sqrt()``."""
    below: Value = None
    power = node.op in ("pow", "power") and len(node.inputs) > 1 and (number_of(node.inputs[1]) or 0) < 0
    if power or (node.op in ("rsqrt", "reciprocal") and node.inputs):
        below = node.inputs[0]
    elif node.op in ("div", "true_divide") and len(node.inputs) > 1:
        below = node.inputs[1]
    for _ in range(STEPS):
        if not isinstance(below, Node) or not below.inputs:
            return None
        if below.op in COUNTS:
            whole = below.op == "sum" and not below.shape.open and not below.shape.dims
            return below if not whole else None
        root = below.op == "pow" and number_of(below.get("exponent", 1)) == 1 / 2
        below = below.inputs[0] if below.op in MOVED or root or _new_axis(below) else None
    return None


def _new_axis(node: Node) -> bool:
    """True for ``count[:, None]``."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else 0
    listed = index if isinstance(index, tuple) else (index,)
    return all(i is None or i is Ellipsis or (isinstance(i, Obj) and i.args == (None, None, None)) for i in listed)


def _picked(node: Node) -> bool:
    """True where some rows are taken by their numbers: those of the links, perhaps, which none of them lack."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    listed = index if isinstance(index, tuple) else (index,)
    return node.op in ("index_select", "gather", "take_along_dim") or any(isinstance(i, Node) for i in listed)


def _guarded(run: Rehearsing, node: Node) -> bool:
    level, seen, moved = [node], 0, [node]
    for _ in range(STEPS):
        level = [u for one in level for u in users(run).get(id(one), ())]
        seen += len(level)
        moved = [u for one in moved for u in users(run).get(id(one), ())]
        if any(_picked(u) for u in moved):
            return True
        moved = [u for u in moved if u.op in MOVED or _new_axis(u)]
        if seen > MOST // 1000 or any(u.op in GUARDS or u.op.startswith("nan") for u in level):
            return True
    return False


def _often_zero(count: Node) -> bool:
    zeros = 0
    for seed in range(TRIES):
        trial = _Trial(seed)
        try:
            found = trial.bench.work(count)
        except Unknown:
            return False
        zeros += bool(found.size > 1 and (found == 0).any() and (found >= 0).all())
    return zeros >= WANTED


class _Trial:
    """A bench that draws what the program draws, as large as the program does."""

    def __init__(self, seed: int) -> None:
        self.bench = Bench(leaf=self.leaf, seed=seed)

    def leaf(self, node: Node) -> Array | None:
        if node.op == "bincount" and node.inputs:
            least = node.get("minlength", 2, 0)
            given = self.bench.work(node.inputs[0]).reshape(-1).astype(int)
            return self.bench.np.bincount(given, minlength=self.bench.whole(least))
        first = node.inputs[0] if node.op == "len" and node.inputs else None
        if isinstance(first, Node) and first.shape.dims and not first.shape.open:
            return self.bench.np.asarray(first.shape.dims[0]) if first.shape.dims[0] is not None else None
        sizes = node.shape.dims
        if node.op not in SOURCES | set(FILLED) or node.shape.open or not all(isinstance(s, int) for s in sizes):
            return None
        whole = [s for s in sizes if isinstance(s, int)]
        if math.prod(whole) > MOST:
            return None
        if node.op in FILLED:
            return self.bench.np.full(whole, FILLED[node.op])
        random = self.bench.random
        if node.op in WHOLE:
            ends = span(node)
            return random.integers(ends[0], ends[1] + 1, whole) if ends is not None else None
        return random.standard_normal(whole) if node.op in NORMAL else random.random(whole)


__all__ = ["nodes_without_links"]
