"""Figures of an evaluation that are put together from its batches: does what is added up fit what it is divided by?

What one batch gives is *extensive* (a sum over its samples, their number), *intensive* (a mean over them), or *curved*:
a root, an exponential or a quotient of sums, whose average over batches is not that of the whole set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Literal

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Turn, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.library.data import LOADERS
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import length, trips
from trainwreck.code.rehearsal.questions.gradients import backwards
from trainwreck.code.rehearsal.questions.modes import inside_another
from trainwreck.code.rehearsal.questions.one_batch import adds_at, over_samples, single_samples
from trainwreck.code.rehearsal.questions.roles import users

Grade = Literal["each", "sum", "mean", "count", "curved", "fixed"]
"""A value for each sample; a sum over them; a mean; their number; none of these; a number that no batch goes into."""
SAME = frozenset(
    """item float detach cpu numpy float_value round int to double squeeze tolist float32 float64 abs_ clone
    contiguous unsqueeze tensor as_tensor nan_to_num asarray array""".split()
)
ADDS = frozenset(["add", "counter", "either"]) | SAME
LENGTHS = frozenset(["len", "size", "numel", "nelement"])
SUMS = frozenset(["sum", "count_nonzero", "nansum"])
MEANS = frozenset(["mean", "nanmean", "average"])
CURVES = frozenset(["sqrt", "exp", "log", "log10", "log2", "pow"])
ORDERS = frozenset(["argsort", "sort", "searchsorted", "rankdata", "roc_curve", "cumsum"])
GATHERS = frozenset(["stack", "cat", "concatenate", "tensor", "array", "asarray", "as_tensor", "fromiter"])
FLOORS = frozenset(["max", "maximum", "clamp", "clip", "clamp_min"])
SCORES = frozenset(
    """f1_score fbeta_score roc_auc_score average_precision_score precision_score recall_score r2_score jaccard_score
    matthews_corrcoef cohen_kappa_score balanced_accuracy_score spearmanr pearsonr corrcoef""".split()
)
"""Scores that are a quotient of sums, or an order, over all samples."""
CUTS = frozenset(["split", "chunk", "array_split", "tensor_split"])
MEAN_LOSSES = ("_loss", "entropy", "_logits")


def curved(run: Rehearsing) -> Iterator[Answer]:
    """A root, an exponential or a quotient of sums of each batch, averaged over the batches."""
    told: set[int] = set()
    for node, leaves, _ in _averages(run):
        for leaf in leaves:
            if single_samples(leaf) or _over_tasks(leaf):
                continue
            bend = next((n for n in ancestors(leaf, through=lambda n: n.op in SAME | {"mul"}) if _bent(n)), None)
            if bend is None or bend.place is None or id(bend.place[0]) in told:
                continue
            told.add(id(bend.place[0]))
            text = "this is worked out for each batch, and its average over the batches is not that of the whole set"
            place = bend.place if bend.op in SCORES else adds_at(leaf) or bend.place
            proof = tuple(p for p in (bend.place, node.place) if p is not None and p is not place)
            yield Answer(place, text, proof, severity="warning")


def misdivided(run: Rehearsing) -> Iterator[Answer]:
    """Means of batches over the number of samples, or sums of hits over the number of batches."""
    told: set[int] = set()
    for node, leaves, lower in _averages(run):
        twice = next((n for leaf in leaves for n in ancestors(leaf, through=_same) if _divided_again(n)), None)
        if twice is not None and twice.place is not None and not single_samples(leaves[0]):
            if id(twice.place[0]) not in told:
                told.add(id(twice.place[0]))
                yield Answer(twice.place, "the mean over a batch is divided by its size once more")
            continue
        unit = _unit(run, lower, leaves)
        grades = {_grade(leaf) for leaf in leaves}
        if node.place is None or len(grades) != 1 or unit is None:
            continue
        grade = grades.pop()
        hits = all(_hits(leaf) for leaf in leaves)
        if grade == "mean" and unit == "samples" and not hits and not single_samples(leaves[0]):
            text = "means of batches are added up, and divided by the number of samples"
        elif (
            grade == "sum" and unit == "batches" and hits and not single_samples(leaves[0]) and not _goes_on(run, node)
        ):
            text = "hits are counted over all samples, and divided by the number of batches"
        else:
            continue
        place = (adds_at(leaves[-1]) if grade == "mean" and _counted(lower) else None) or node.place
        if id(place[0]) not in told:
            told.add(id(place[0]))
            yield Answer(place, text, (node.place,) if place is not node.place else ())


def _goes_on(run: Rehearsing, node: Node) -> bool:
    """True where the quotient is divided once more, by a number: ``hits / 50 / 25``."""
    further = users(run).get(id(node), ())
    return any(u.op == "div" and u.inputs[0] is node and isinstance(u.inputs[1], int | float) for u in further)


def _same(node: Node) -> bool:
    return node.op in SAME


def _divided_again(node: Node) -> bool:
    if node.op != "div" or len(node.inputs) < 2:
        return False
    return _grade(node.inputs[0]) == "mean" and _grade(node.inputs[1]) == "count"


def _averages(run: Rehearsing) -> Iterator[tuple[Node, list[Node], Value]]:
    """Quotients behind a loop of evaluation: the node, what each turn adds to its numerator, and its denominator."""
    loops = _loops(run)
    for node in run.nodes:
        if node.op in ("div", "true_divide") and len(node.inputs) > 1:
            upper, lower = node.inputs[:2]
        elif node.op in MEANS and node.inputs:
            upper, lower = node.inputs[0], None
            if isinstance(upper, Node) and upper.op in GATHERS and upper.inputs:
                upper = upper.inputs[0]
            if not isinstance(upper, Items):
                continue
        else:
            continue
        leaves = _comprehended(upper) or _summed(upper)
        leaves += [n for n in _leaves(upper, node) if any(id(t) in loops for t in n.turns[len(node.turns) :])]
        if leaves and any(_judged(run, leaf) for leaf in leaves):
            yield node, leaves, lower


def _comprehended(value: Value) -> list[Node]:
    """The elements of a comprehension over a loader, outside of autograd."""
    if not isinstance(value, Items) or value.kind != "list" or not isinstance(value.source, Obj):
        return []
    of_loader = value.source.name in LOADERS and value.place is not None
    return [n for n in value.items if isinstance(n, Node) and not n.grad and n.inputs] if of_loader else []


def _summed(value: Value) -> list[Node]:
    """The summands of ``sum(... for x, y in loader)``, outside of autograd."""
    call = value.place[0] if isinstance(value, Node) and value.op in ("add", "sum") and value.place else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "sum" or not call.args:
        return []
    if not isinstance(call.args[0], ast.GeneratorExp | ast.ListComp):
        return []
    parts_of = [n for n in ancestors(value, through=lambda n: n.place is not None and n.place[0] is call)]
    leaves = [n for n in parts_of if n.place is None or n.place[0] is not call]
    of_batches = all(any(m.op == "batch" or (m.turns != n.turns and _cut(m)) for m in ancestors(n)) for n in leaves)
    return leaves if of_batches and all(not n.grad for n in leaves) else []


def _cut(node: Node) -> bool:
    """True for what was kept from each turn of a loop over the parts that a tensor was cut into, of more than one."""
    over = node.turns[-1].over if node.turns and not node.grad else None
    cut = isinstance(over, Node) and over.op in CUTS and len(over.inputs) > 1
    return cut and isinstance(over, Node) and over.inputs[1] != 1


def _loops(run: Rehearsing) -> set[int]:
    """``id`` of the turns in which a network is run outside of autograd or in evaluation mode, and nothing learns."""
    if "evaluating turns" not in run.memo:
        learning = {id(t) for b in backwards(run) for t in b.turns}
        quiet = [e for e in run.tape if e.name == "forward" and (not e.grad_mode or e.state.get("training") is False)]
        quiet = [e for e in quiet if e.turns and id(e.turns[-1]) not in learning and not inside_another(run, e)]
        run.memo["evaluating turns"] = {id(e.turns[-1]) for e in quiet}
    found: set[int] = run.memo["evaluating turns"]
    return found


def _judged(run: Rehearsing, leaf: Node) -> bool:
    """True where what a network with weights gave went into it."""
    return any(n.op == "param" for n in ancestors(leaf))


def _leaves(value: Value, around: Node) -> list[Node]:
    """What was added up in loops that ``around`` stands behind: the summands, in the turns of those loops."""
    found: list[Node] = []
    seen: set[int] = set()  # a sum that is read at two places is added up once
    queue = [value]
    while queue:
        item = queue.pop()
        if isinstance(item, Items | tuple):
            queue += reversed(item.items if isinstance(item, Items) else item)
        elif isinstance(item, Node) and id(item) not in seen:
            seen.add(id(item))
            within = _within(item, around)
            if within is None:
                found.append(item)
            else:
                queue += reversed(within)
    return found


def _within(value: Node, around: Node) -> Sequence[Value] | None:
    """What a running sum was put together from; nothing for another value, None for a summand of a loop."""
    if value.op == "setitem" or _slot(value):
        return value.inputs[: 2 if value.op == "setitem" else 1]
    if value.op in ("add", "counter", "either") and (_running(value) or any(_slot(i) for i in value.inputs)):
        return value.inputs
    if len(value.turns) > len(around.turns):
        return None
    if value.op in ADDS or value.op in SUMS | GATHERS | FLOORS:
        return value.inputs
    by_number = value.op == "mul" and sum(isinstance(i, int | float) for i in value.inputs) == 1
    return value.inputs if by_number else ()


def _slot(value: Value) -> bool:
    """True for one place of an array in which figures are gathered: ``total[c]``."""
    base = value.inputs[0] if isinstance(value, Node) and value.op == "getitem" and value.inputs else None
    return isinstance(base, Node) and base.op in ("setitem", "zeros")


def _running(node: Node) -> bool:
    """True for a sum that goes on from an earlier turn, or from nothing."""
    if node.op != "add" or "inplace" in node.options:
        return True
    return any(
        (isinstance(i, int | float) and i == 0) or (isinstance(i, Node) and i.turns != node.turns) for i in node.inputs
    )


def _grade(value: Value, depth: int = 0) -> Grade | None:
    """How what one batch gives grows with its size; None where that isn't known."""
    if isinstance(value, int | float):
        return "fixed"
    if not isinstance(value, Node) or depth > 30:
        return None
    first = value.inputs[0] if value.inputs else None
    if value.op in SAME or value.op == "neg":
        return _grade(first, depth + 1)
    if value.op in LENGTHS:
        along = value.inputs[1] if len(value.inputs) > 1 else 0
        return "count" if along == 0 else None
    if value.op.endswith(MEAN_LOSSES) and value.op not in ("entropy", "logits"):
        reduction = value.options.get("reduction", "mean")
        known: dict[Value, Grade] = {"mean": "mean", "sum": "sum", "none": "each", "batchmean": "mean"}
        return known.get(reduction) if isinstance(reduction, str) else None
    if value.op in SUMS | MEANS:
        if value.full == "builtins.sum" or not isinstance(first, Node):
            return None
        inner = _grade(first, depth + 1)
        if inner != "each":
            return inner if inner == "curved" else None
        over = over_samples(value)
        return None if over is None else "each" if not over else "sum" if value.op in SUMS else "mean"
    if value.op in ("mul", "div", "add", "sub"):
        return _combined(value, depth)
    if value.op in FLOORS and len(value.inputs) == 2 and any(isinstance(i, int | float) for i in value.inputs):
        return _grade(value.inputs[isinstance(first, int | float)], depth + 1)  # ``max(1, n)`` as well as ``max(n, 1)``
    if value.op in CURVES:
        inner = _grade(first, depth + 1)
        return inner if inner in ("each", "fixed") else None if inner is None else "curved"
    if value.op in ("either", "call", "unknown", "opaque", "argument"):
        return None
    return "each" if any(n.op in ("batch", "param", "getitem") for n in ancestors(value)) else None


def _combined(value: Node, depth: int) -> Grade | None:
    one, other = (_grade(i, depth + 1) for i in value.inputs[:2])
    if one is None or other is None:
        return None
    if "fixed" in (one, other) and not (value.op == "div" and one == "fixed"):
        return other if one == "fixed" else one
    if "curved" in (one, other) and {one, other} <= {"curved", "mean"}:
        return "curved"
    if {one, other} <= {"each"} or "each" in (one, other):
        return "each"
    if value.op == "mul":
        return "sum" if {one, other} == {"mean", "count"} else None
    if value.op == "div":
        if other == "count":
            return "mean" if one in ("sum", "count") else None
        return "curved" if one == "sum" and other == "sum" else None
    return one if one == other else None


def _bent(node: Node) -> bool:
    """True for a curve through a mean, or a quotient of two sums that both depend on what the network said."""
    if node.op in SCORES:
        return not node.full or node.full.split(".")[0] in ("sklearn", "scipy", "torch", "numpy", "torchmetrics")
    if node.op in CURVES and node.inputs:
        plain = node.op == "pow" and node.inputs[1:] == (1,)
        return _grade(node.inputs[0]) in ("mean", "sum", "curved") and not plain
    if node.op != "div" or len(node.inputs) < 2:
        return False
    upper, lower = node.inputs[:2]
    if _grade(upper) != "sum" or _grade(lower) != "sum" or not isinstance(lower, Node):
        return False
    said = [n for n in ancestors(lower) if n.op == "param"]
    return bool(said) and all(_hits(side) or _overlaps(side) for side in (upper, lower))


def _hits(value: Value) -> bool:
    """True for what is counted: a sum over comparisons, or over products and negations of them."""
    compares = frozenset("eq ne lt le gt ge compare and or invert logical_and logical_or isin".split())
    through = SUMS | MEANS | SAME | {"mul", "add", "sub", "long", "bool"} | FLOORS
    leaves = {n.op for n in ancestors(value, through=lambda n: n.op in through)} - through
    return leaves <= compares | LENGTHS and not leaves.isdisjoint(compares)


def _overlaps(value: Value) -> bool:
    """True for a sum over a mask of the data, or over what it has in common with a comparison (a Dice score)."""
    through = SUMS | SAME | {"mul", "add"} | FLOORS
    leaves = [n for n in ancestors(value, through=lambda n: n.op in through) if n.op not in through]
    compared = [n for n in leaves if n.op in ("gt", "ge", "lt", "le", "eq")]
    return bool(compared) and all(n in compared or n.op == "batch" for n in leaves)


def _unit(run: Rehearsing, lower: Value, leaves: list[Node]) -> str | None:
    """``samples`` or ``batches``: what a denominator counts."""
    known = [c for c in candidates(lower) if c is not None]
    if len(known) != 1:
        return None
    value = known[0]
    if isinstance(value, Node) and value.op in FLOORS | SAME and value.inputs:
        return _unit(run, value.inputs[0], leaves)
    turn = leaves[-1].turns[-1] if leaves[-1].turns else None
    if isinstance(value, int | float):
        turns = turn is not None and value == trips(run, turn) and _several(leaves)
        return _by_number(run, float(value), turn) or ("batches" if turns else None)
    if not isinstance(value, Node):
        return None
    if value.op in LENGTHS and turn is not None and any(t.node is turn.node for t in value.turns):
        held = value.inputs[0] if value.inputs else None
        drawn = isinstance(held, Node) and any(n.op in ("batch", "element", "part") for n in near(held, 4))
        return "one batch" if drawn else None
    if value.op == "len":
        return _lengths_of(value.inputs[0] if value.inputs else None, turn)
    if value.op in ("size", "numel"):
        return "samples" if turn is not None and turn not in value.turns else None
    if value.op == "add" and _running(value):
        grown = [i for n in ancestors(value, through=lambda n: n.op in ADDS) for i in n.inputs if n.op in ADDS]
        if any(isinstance(i, Node) and _grade(i) == "count" for i in grown):
            return "samples"
        plain = all(isinstance(i, int) or (isinstance(i, Node) and i.op in ADDS) for i in grown)
        return "batches" if plain and 1 in [i for i in grown if isinstance(i, int)] else None
    return None


def _lengths_of(held: Value, turn: Turn | None) -> str | None:
    for one in candidates(held):
        if isinstance(one, Obj) and one.name in LOADERS:
            return "batches"
        if isinstance(one, Obj) and one.cls is None and one.name in ("TensorDataset", "Subset"):
            return "samples"
        if isinstance(one, Obj) and one.cls is not None and one.cls.find("__getitem__") is not None:
            return "samples"
        if isinstance(one, Items):
            # a list that was filled in another loop may as well hold the samples
            filled = turn is not None and any(t.node is turn.node for n in parts(one) for t in n.turns)
            return "batches" if filled or (turn is not None and turn.over is one) else None
        if isinstance(one, Node):
            return "batches" if one.op == "split" else "samples" if not one.turns and one.op != "argument" else None
    return None


def _by_number(run: Rehearsing, value: float, turn: Turn | None) -> str | None:
    if turn is None:
        return None
    batches = trips(run, turn)
    over = turn.over
    while isinstance(over, Items) and over.source is not None:
        over = over.source
    samples = length(run, over.get("dataset", 0)) if isinstance(over, Obj) and over.name in LOADERS else None
    if batches is None or samples is None or batches == samples:
        return None
    return "batches" if value == batches else "samples" if value == samples else None


def _several(leaves: list[Node]) -> bool:
    """True where each turn surely compares several samples."""
    compared = [n for leaf in leaves for n in ancestors(leaf, through=lambda n: n.op in SAME | SUMS) if n.op == "eq"]
    return bool(compared) and all(not n.shape.open and n.shape.dims and (n.shape.dims[0] or 0) > 1 for n in compared)


def _counted(lower: Value) -> bool:
    """True for a number that the loop itself counts up: then it is the summand that should fit."""
    return isinstance(lower, Node) and any(n.op == "add" for n in ancestors(lower, through=lambda n: n.op in ADDS))


def _over_tasks(leaf: Node) -> bool:
    """True in a loop over named sets, each of which is a whole: the average over them is a figure of its own."""
    if any(n.op == "batch" for n in ancestors(leaf)) or not leaf.turns:
        return False
    loop = leaf.turns[-1].node
    over = loop.iter.func if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) else None
    return isinstance(over, ast.Attribute) and over.attr in ("items", "values", "keys")
