"""Values that are gathered over a pass through a loader: is what they are compared with in the same order?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Table, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import ORDERS, REDUCTIONS, key_of

GATHERS = frozenset(["cat", "concat", "concatenate", "stack", "vstack", "hstack", "array", "asarray", "tensor"])
COMPARES = frozenset(
    """eq ne cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss kl_div binary_cross_entropy
    binary_cross_entropy_with_logits accuracy_score f1_score roc_auc_score average_precision_score confusion_matrix
    balanced_accuracy_score classification_report log_loss mean_squared_error mean_absolute_error r2_score spearmanr
    pearsonr""".split()
)
RANDOM_SAMPLERS = frozenset(["RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler", "DistributedSampler"])
FITS = frozenset(["fit", "score", "partial_fit"])
PLACED = frozenset(["setitem", "index_copy", "scatter", "argsort", "sort", "index_add", "index_fill"])
"""What puts values where they belong: the order of the pass no longer counts."""

Pass = tuple[object, ...]


@dataclass(slots=True)
class Rows:
    """Where the rows of a value come from."""

    passes: dict[Pass, Node] = field(default_factory=dict)
    """One batch of each pass over a loader."""
    arrays: set[object] = field(default_factory=set)
    """``id`` of the values on the way that are no batches; of a part that was cut out, what it was cut from and how."""
    gathered: bool = False
    placed: bool = False


def shuffled_apart(run: Rehearsing) -> Iterator[Answer]:
    """Results of a shuffled pass meet labels in the order of the data set, or those of another shuffled pass."""
    if not any(o.name == "DataLoader" and shuffles(o) for o in run.objects):
        return
    told: set[int] = set()
    memo: dict[int, Rows] = {}
    for node, one, other in _meetings(run):
        for value in (one, other):
            memo.setdefault(id(value), rows(value))
        for here, there in ((one, other), (other, one)):
            loader = _apart(run, memo[id(here)], memo[id(there)])
            place = _place(run, loader) if loader is not None else None
            if place is not None and id(place[0]) not in told:
                told.add(id(place[0]))
                text = "this pass is shuffled, and what its results are paired with stands in another order"
                yield Answer(place, text, (node,) if node is not None else ())
                break


def _meetings(run: Rehearsing) -> Iterator[tuple[Place | None, Value, Value]]:
    """What is compared with what: losses, metrics, the data of an estimator."""
    for node in run.nodes:
        if node.op in COMPARES and len(node.inputs) > 1:
            yield node.place, node.inputs[0], node.inputs[1]
    for event in run.tape:
        if event.name in FITS and len(event.args) > 1 and isinstance(event.subject, Obj):
            yield event.place, event.args[0], event.args[1]


def rows(value: Value) -> Rows:
    """The batches and arrays that the rows of a value are; statistics of many rows have no order."""
    found = Rows()

    def through(node: Node) -> bool:
        if node.op in ("param", "batch", "size", "len") or _statistic(node):
            return False
        return not (node.op == "getitem" and len(node.inputs) > 1 and _ordered(node.inputs[1]))

    for node in ancestors(value, through=through):
        if node.op == "batch" and isinstance(node.owner, Obj):
            found.passes[_pass(node)] = node
        elif node.op == "getitem" and len(node.inputs) > 1 and _ordered(node.inputs[1]):
            found.placed = True
        elif node.op not in ("param", "size", "len") and not _statistic(node):
            found.arrays |= _names_of(node)
            found.gathered = found.gathered or (node.op in GATHERS and _many(node))
            found.placed = found.placed or node.op in PLACED
    return found


def _many(node: Node) -> bool:
    first = node.inputs[0] if node.inputs else None
    return isinstance(first, Items) and (first.more or len(first.items) > 1)


def _pass(node: Node) -> Pass:
    """Equal for all batches of one pass: of one loop or comprehension in one call."""
    loops = tuple(id(t.node) for t in node.turns)
    return (id(node.owner), id(node.place[0]) if node.place else 0, tuple(id(p[0]) for p in node.stack), loops)


def _statistic(node: Node) -> bool:
    """True for a mean or another summary over the rows."""
    if node.op not in REDUCTIONS or node.op in ("item", "len"):
        return False
    dim = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else None))
    return dim is None or dim == 0


def _ordered(index: Value) -> bool:
    """True for an index that puts rows in an order: a permutation, or numbers that a batch brings along."""
    return any(n.op in ORDERS or n.op in ("batch", "index") for node in parts(index) for n in ancestors(node))


def _apart(run: Rehearsing, here: Rows, there: Rows) -> Obj | None:
    """The shuffled loader that ``here`` was gathered from, where ``there`` stands in another order."""
    if len(here.passes) != 1 or not here.gathered or here.placed or there.placed:
        return None
    key, batch = next(iter(here.passes.items()))
    loader = batch.owner
    if loader is None or not shuffles(loader):
        return None
    dataset = loader.get("dataset", 0)
    if not there.passes:
        return loader if there.arrays & held(dataset) else None
    if len(there.passes) != 1 or key in there.passes or not there.gathered:
        return None
    other = next(iter(there.passes.values())).owner
    return loader if other is not None and other.get("dataset", 0) is dataset else None


def shuffles(loader: Obj) -> bool:
    """True for a loader that is sure to give another order than the data set's."""
    sampler = loader.get("sampler", 3)
    if isinstance(sampler, Obj):
        return sampler.name in RANDOM_SAMPLERS and sampler.options.get("shuffle") is not False
    return loader.get("shuffle", 2) is True


def _names_of(node: Node) -> set[object]:
    """What a value is known by: two cuts ``y[800:]`` of one array are the same rows in the same order."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    cut = isinstance(index, Obj) and index.kind == "builtins.slice" and not node.turns
    return {id(node), key_of(node)} if cut else {id(node)}


def held(dataset: Value, depth: int = 0) -> set[object]:
    """What the values are known by that a data set holds in its own order."""
    found: set[object] = set()
    if isinstance(dataset, Obj) and depth < 4:
        for value in (*dataset.attributes.values(), *dataset.args):
            found |= held(value, depth + 1)
        if dataset.name == "Subset":
            return set()
    elif isinstance(dataset, Node | tuple | Items | Table) and depth:
        found |= {name for n in parts(dataset) for name in _names_of(n)}
    return found


def _place(run: Rehearsing, loader: Obj) -> Place | None:
    """Where the loader is made; where it also serves a training loop, the pass itself."""
    trains = any(
        event.name == "backward" and any(n.op == "batch" and n.owner is loader for n in ancestors(event.subject))
        for event in _last(run)
    )
    if not trains:
        return loader.place
    for event in run.tape:
        if event.name == "iterate" and event.subject is loader and not event.grad_mode:
            return event.place
    return loader.place


def _last(run: Rehearsing) -> list[Event]:
    found = {id(e.place[0]): e for e in run.tape if e.name == "backward" and e.place is not None}
    return list(found.values())
