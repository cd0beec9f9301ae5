"""Weights of classes: whether they grow or fall with the number of samples of a class."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Table, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import paths
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds, given, loss_place, losses, trained

COUNTS = frozenset(["bincount", "value_counts", "Counter", "histc", "counts"])
KEEPS = STRUCTURE | frozenset(
    ["sqrt", "clamp", "clip", "clamp_min", "float", "maximum", "log1p", "add", "softmax", "log", "buffer"]
)
WRAPS = frozenset(["tensor", "as_tensor", "float", "to", "buffer", "sqrt", "clamp"])
SINGLE = frozenset(["cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"])
SUMMARIES = frozenset(["sum", "mean", "max", "min", "len", "norm", "numel", "size", "median"])
"""What makes one number of the counts: weights that are divided by it keep their sense."""


def grow(run: Rehearsing) -> Iterator[Answer]:
    """The weights of a loss that are the larger the more samples a class has."""
    for loss in losses(run, "cross_entropy", "nll_loss"):
        weight = loss.options.get("weight")
        if weight is None and loss.owner is not None:
            weight = loss.owner.get("weight", 0)
        sense, made = _sense(weight, 0)
        place = made if made is not None else loss_place(loss)
        if sense > 0 and place is not None:
            proof = (loss.place,) if loss.place is not None else ()
            yield Answer(place, "these weights grow with the number of samples of a class", proof)


def looked_up(run: Rehearsing) -> Iterator[Answer]:
    """Losses of single samples times a weight that is looked up by their label, and grows with how common it is."""
    for node in trained(run):
        if node.op != "mul" or len(node.inputs) < 2:
            continue
        for weight, loss in (node.inputs[:2], node.inputs[1::-1]):
            label = (
                weight.inputs[1] if isinstance(weight, Node) and weight.op == "getitem" and not weight.grad else None
            )
            if not isinstance(label, Node) or not isinstance(loss, Node) or loss.op not in SINGLE:
                continue
            if not any(i is label or i in label.inputs[:1] for i in loss.inputs[1:2] if isinstance(i, Node)):
                continue
            sense, made = _sense(weight.inputs[0], 0) if isinstance(weight, Node) else (0, None)
            place = node.place if _plain_share(weight) else made or node.place
            if sense > 0 and place is not None:
                proof = (node.place,) if node.place is not None else ()
                yield Answer(place, "these weights grow with the number of samples of a class", proof)
                return


def _plain_share(weight: Value) -> bool:
    """True where counts, or counts over how many there are, are looked up as they are: nothing was made a weight."""
    base = weight.inputs[0] if isinstance(weight, Node) and weight.inputs else None
    top = base.inputs[0] if isinstance(base, Node) and base.op == "div" and base.inputs else base
    while isinstance(top, Node) and top.op in ("float", "double", "astype") and top.inputs:
        top = top.inputs[0]
    return isinstance(top, Node) and top.op in COUNTS


def turned_over(run: Rehearsing) -> Iterator[Answer]:
    """``pos_weight`` as positives over negatives: the rarer they are, the less they count."""
    for loss in losses(run, "binary_cross_entropy_with_logits"):
        weight = loss.options.get("pos_weight")
        for _ in range(6):
            if not isinstance(weight, Node) or weight.op not in STRUCTURE | WRAPS or not weight.inputs:
                break
            first = weight.inputs[0]
            weight = first.items[0] if isinstance(first, Items) and len(first.items) == 1 else first
        if not isinstance(weight, Node) or weight.op != "div" or len(weight.inputs) < 2 or weight.place is None:
            continue
        above, below = weight.inputs[:2]
        if (_side(above), _side(below)) == ("pos", "neg") or _labels_over_rest(run, loss, above, below):
            text = "pos_weight is positives over negatives here; it means negatives over positives"
            yield Answer(weight.place, text, (loss.place,) if loss.place is not None else ())
            return


def _labels_over_rest(run: Rehearsing, loss: Node, above: Value, below: Value) -> bool:
    """True for ``s / (n - s)`` where ``s`` is the sum of the very column that the loss has as its target: in a binary
    cross entropy that holds the ones, whatever the program shows of its numbers."""
    counted, rest = _bare(above), _bare(below)
    if not isinstance(counted, Node) or counted.op != "sum" or not counted.inputs or not isinstance(rest, Node):
        return False
    total = rest.inputs[0] if rest.op == "sub" and len(rest.inputs) > 1 else None
    taken = isinstance(total, Node) and total.op in ("len", "size", "numel") and _bare(rest.inputs[1]) is counted
    target = given(loss, "target", 1)
    if not taken or not isinstance(counted.inputs[0], Node) or not isinstance(target, Node):
        return False
    mine, taught = _columns(run, counted.inputs[0]), _columns(run, target)
    return bool(mine) and mine <= taught


def _bare(value: Value) -> Value:
    while isinstance(value, Node) and value.op in WRAPS | {"item", "int", "float"} and value.inputs:
        value = value.inputs[0]
    return value


def _columns(run: Rehearsing, value: Node) -> set[tuple[object, ...]]:
    """From which array, and by which names, the numbers come; without those that are turned on the way."""
    found: set[tuple[object, ...]] = set()
    for path in paths(run, value):
        at = path.nodes.index(path.root) if path.root in path.nodes else 0
        named = [n.inputs[1] for n in path.nodes[at:] if n.op == "getitem" and isinstance(n.inputs[1], str)]
        if named and not any(n.op in TURNS for n in path.nodes):
            found.add((id(path.root), *named))
    return found


TURNS = frozenset(["sub", "eq", "ne", "invert", "not", "logical_not", "neg", "lt", "le", "where", "rsub", "map"])
"""What may make ones of zeros."""


def _side(value: Value, depth: int = 0) -> str:
    """``pos`` for the number (or share) of ones among labels of zeros and ones, ``neg`` for that of zeros."""
    first = value.inputs[0] if isinstance(value, Node) and value.inputs else None
    if not isinstance(value, Node) or not isinstance(first, Node | int | float) or depth > 8:
        return ""
    if value.op in ("sum", "mean", "count_nonzero") and isinstance(first, Node):
        if first.op == "eq" and len(first.inputs) > 1:
            return "neg" if first.inputs[1] == 0 else "pos" if first.inputs[1] == 1 else ""
        if first.op == "sub" and first.inputs[0] == 1:
            return "neg" if (found := bounds(first.inputs[1])).low == 0 and found.high == 1 else ""
        return "pos" if (found := bounds(first)).low == 0 and found.high == 1 and first.op != "invert" else ""
    if value.op == "sub" and len(value.inputs) > 1:
        total = isinstance(first, int | float) or first.op in ("len", "size", "numel")
        return {"pos": "neg", "neg": "pos"}.get(_side(value.inputs[1], depth + 1), "") if total else ""
    return _side(first, depth + 1) if value.op in KEEPS | {"item", "int"} else ""


def twice(run: Rehearsing) -> Iterator[Answer]:
    """A loss that weighs the rare classes up, of batches that a sampler has balanced by the same counts."""
    for loss in losses(run, "cross_entropy", "nll_loss"):
        weight = loss.options.get("weight")
        if weight is None and loss.owner is not None:
            weight = loss.owner.get("weight", 0)
        place = loss.owner.place if loss.owner is not None else loss_place(loss)
        if place is None or _sense(weight, 0)[0] >= 0:
            continue
        for batch in (n for n in ancestors(loss) if n.op == "batch" and isinstance(n.owner, Obj)):
            sampler = batch.owner.get("sampler", 3) if batch.owner is not None else None
            if (
                isinstance(sampler, Obj)
                and sampler.name == "WeightedRandomSampler"
                and _evens(sampler.get("weights", 0))
            ):
                proof = (sampler.place,) if sampler.place is not None else ()
                yield Answer(place, "the loss weighs the classes, and the sampler balances them as well", proof)
                break


def _evens(weights: Value) -> bool:
    """True for the inverse counts of the classes, looked up for each sample by its label."""
    for _ in range(8):
        if isinstance(weights, Items) and weights.items:
            weights = weights.items[-1]
        elif isinstance(weights, Node) and weights.op == "getitem":
            base, index = (*weights.inputs, None)[:2]
            return isinstance(index, Node) and _sense(base, 0)[0] < 0
        elif isinstance(weights, Node) and weights.op in KEEPS | {"tensor", "as_tensor", "from_numpy", "tolist"}:
            weights = weights.inputs[0] if weights.inputs else None
        else:
            return False
    return False


def _sense(value: Value, depth: int) -> tuple[int, Place | None]:
    """(+1 if ``value`` grows with the counts, -1 if it falls with them, else 0; the operation that settled it)."""
    if depth > 30:
        return 0, None
    if isinstance(value, tuple | Items):
        items = list(value) if isinstance(value, tuple) else value.items
        return _sense(items[0], depth + 1) if items else (0, None)
    if isinstance(value, Table):
        return _sense(next(iter(value.entries.values()), None), depth + 1)
    if not isinstance(value, Node) or value.op in SUMMARIES:
        return 0, None
    inputs = value.inputs
    if value.op == "either":
        found = {_sense(c, depth + 1) for c in candidates(value)}
        return found.pop() if len(found) == 1 else (0, None)
    if value.op in COUNTS or (value.op == "part" and _counted(value)):
        return 1, None
    if value.op in ("div", "mul") and len(inputs) > 1:
        (one, first), (other, second) = (_sense(i, depth + 1) for i in inputs[:2])
        if bool(one) == bool(other):
            return 0, None
        if one:
            return one, first or value.place
        return (-other if value.op == "div" else other), second or value.place
    if value.op == "pow" and len(inputs) > 1 and isinstance(inputs[1], int | float):
        sense, place = _sense(inputs[0], depth + 1)
        return (sense if inputs[1] > 0 else -sense), place or value.place
    if value.op == "reciprocal" or (value.op == "sub" and len(inputs) > 1 and isinstance(inputs[0], int | float)):
        sense, place = _sense(inputs[-1], depth + 1)
        return -sense, place or value.place
    if value.op == "neg":
        sense, place = _sense(inputs[0], depth + 1)
        return -sense, place
    if value.op in KEEPS and inputs:
        return _sense(inputs[0], depth + 1)
    return 0, None


def _counted(part: Node) -> bool:
    """``values, counts = unique(labels, return_counts=True)``."""
    base = part.inputs[0]
    return isinstance(base, Node) and base.op == "unique" and "return_counts" in base.options and part.inputs[1] == 1
